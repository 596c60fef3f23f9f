//! Tensors of any rank and kind in one type, and the way from the wire's numbers and names to burn's own types.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

#[allow(deprecated, reason = "ndarray is one of the backends that are asked")]
use burn::backend::ndarray::NdArrayTensor;
use burn::backend::{BackendTensor, DispatchTensor, DispatchTensorKind, TensorMetadata};
use burn::tensor::kind::{Basic, Kind, TensorKind};
use burn::tensor::{Bool, BoolStore, DType, Device, Float, FloatDType, Int, IntDType, Tensor, TensorData};
use worker::{Arg, Data, Facts, Fault, FromArg, HostBuffer, IntoValue, Number, Value, View};

use crate::{Burn, devices, failed};

macro_rules! dtypes {
    ($($name:literal $native:ident $kind:ident),* $(,)?) => {
        /// The neutral dtypes, and burn's. How a truth is stored is the device's own choice.
        pub const DTYPES: &[(&str, DType)] = &[("bool", DType::Bool(BoolStore::Native)), $(($name, DType::$native)),*];
        /// How a dtype is written, and the kind of its tensors.
        pub const WRITTEN: &[(&str, &str)] = &[
            ("bool", "DType::Bool(BoolStore::Native)"), ("kind/bool", "Bool"),
            $(($name, concat!("DType::", stringify!($native))), (concat!("kind/", $name), stringify!($kind))),*
        ];
    };
}

dtypes! {
    "int8" I8 Int, "int16" I16 Int, "int32" I32 Int, "int64" I64 Int, "uint8" U8 Int, "uint16" U16 Int, "uint32" U32 Int, "uint64" U64 Int,
    "float16" F16 Float, "bfloat16" BF16 Float, "float32" F32 Float, "float64" F64 Float,
}

fn neutral(dtype: DType) -> &'static str {
    let of_list = |wanted: DType| DTYPES.iter().find(|(_, native)| *native == wanted).map(|(name, _)| *name);
    if dtype.is_bool() { "bool" } else { of_list(dtype).unwrap_or_else(|| dtype.name()) }
}

fn kind_of(dtype: DType) -> Kind {
    if dtype.is_bool() {
        Kind::Bool
    } else if dtype.is_float() {
        Kind::Float
    } else {
        Kind::Int
    }
}

/// A variable that holds a tensor. burn's tensors are values: what changes one is the variable it is in.
#[derive(Clone)]
pub struct Variable(Rc<RefCell<DispatchTensor>>);

impl Variable {
    fn new(tensor: DispatchTensor) -> Self {
        Self(Rc::new(RefCell::new(tensor)))
    }

    /// Return device, dtype and shape.
    pub fn facts(&self) -> Facts {
        let tensor = self.0.borrow();
        Facts { device: devices::name(&self.device()), dtype: neutral(tensor.dtype()).into(), shape: tensor.shape().to_vec() }
    }

    /// Return the device that the tensor is on.
    pub fn device(&self) -> Device {
        Device::new(self.0.borrow().device())
    }

    /// Say whether this is the very variable.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Return rank and kind, for a sentence.
    pub fn says(&self) -> String {
        let tensor = self.0.borrow();
        format!("a Tensor<{}, {:?}>", tensor.shape().num_dims(), kind_of(tensor.dtype()))
    }

    fn fits<const D: usize, K: TensorKind>(&self) -> bool {
        let tensor = self.0.borrow();
        tensor.shape().num_dims() == D && kind_of(tensor.dtype()) == K::KIND
    }

    /// Return the elements, waiting for them.
    ///
    /// # Errors
    /// What burn says.
    pub fn read(&self) -> Result<Vec<Number>, Fault> {
        fn of<const D: usize, K: Basic>(tensor: DispatchTensor) -> Result<TensorData, Fault> {
            Tensor::<D, K>::from_dispatch(tensor).try_into_data().map_err(|error| failed(&error))
        }
        fn ranked<K: Basic>(tensor: DispatchTensor) -> Result<TensorData, Fault> {
            match tensor.shape().num_dims() {
                1 => of::<1, K>(tensor),
                2 => of::<2, K>(tensor),
                3 => of::<3, K>(tensor),
                4 => of::<4, K>(tensor),
                rank => Err(Fault::AdapterFailed(format!("a tensor of rank {rank} can't be read"))),
            }
        }
        let tensor = self.0.borrow().clone();
        Ok(match kind_of(tensor.dtype()) {
            Kind::Float => ranked::<Float>(tensor)?.iter::<f64>().map(Number::Float).collect(),
            Kind::Bool => ranked::<Bool>(tensor)?.iter::<bool>().map(Number::Bool).collect(),
            Kind::Int if tensor.dtype().is_uint() => ranked::<Int>(tensor)?.iter::<u64>().map(|n| Number::Int(n.into())).collect(),
            Kind::Int => ranked::<Int>(tensor)?.iter::<i64>().map(|n| Number::Int(n.into())).collect(),
        })
    }

    /// Return what is equal for two tensors exactly when they share storage: an address on the host, the number of an allocation elsewhere.
    /// `None` where there is nothing to be stored.
    pub fn storage(&self) -> Option<usize> {
        match &self.0.borrow().kind {
            DispatchTensorKind::Flex(BackendTensor::Float(tensor) | BackendTensor::Int(tensor) | BackendTensor::Bool(tensor)) => {
                Some(std::sync::Arc::as_ptr(&tensor.data_arc()).addr())
            }
            DispatchTensorKind::Cube(BackendTensor::Float(tensor) | BackendTensor::Int(tensor) | BackendTensor::Bool(tensor)) => {
                Some(tensor.handle.memory.clone().binding().id().value)
            }
            // Where the first element is: a slice of ndarray's is a copy, so that storage has no other beginning.
            DispatchTensorKind::NdArray(BackendTensor::Float(tensor) | BackendTensor::Int(tensor) | BackendTensor::Bool(tensor)) => {
                (tensor.shape().num_elements() > 0).then(|| first_element(tensor))
            }
            _ => None,
        }
    }
}

#[allow(deprecated, reason = "ndarray is one of the backends that are asked")]
fn first_element(tensor: &NdArrayTensor) -> usize {
    macro_rules! address {
        ($($dtype:ident),*) => { match tensor { $(NdArrayTensor::$dtype(storage) => storage.view().as_ptr().addr()),* } };
    }
    address!(F64, F32, I64, I32, I16, I8, U64, U32, U16, U8, Bool)
}

// --- from the wire ---------------------------------------------------------------------------------

impl FromArg<Burn> for Variable {
    fn from_arg(_: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Tensor(variable)) = arg { Some(variable.clone()) } else { None })
    }
}

impl<const D: usize, K: Basic + TensorKind> FromArg<Burn> for Tensor<D, K> {
    fn from_arg(burn: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        let variable = Variable::from_arg(burn, arg)?.filter(Variable::fits::<D, K>);
        Ok(variable.map(|variable| Self::from_dispatch(variable.0.borrow().clone())))
    }
}

/// A variable of one rank and kind, to be changed.
pub struct Place<const D: usize, K>(Variable, PhantomData<K>);

impl<const D: usize, K: Basic + TensorKind> FromArg<Burn> for Place<D, K> {
    fn from_arg(burn: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        Ok(Variable::from_arg(burn, arg)?.filter(Variable::fits::<D, K>).map(|variable| Self(variable, PhantomData)))
    }
}

impl<const D: usize, K: Basic> Place<D, K> {
    /// Do what `Tensor::inplace` does with the variable. A panic leaves in it what that leaves.
    pub fn inplace(self, change: impl FnOnce(Tensor<D, K>) -> Tensor<D, K>) -> Variable {
        struct Held<'a, const D: usize, K: Basic> {
            tensor: Tensor<D, K>,
            home: &'a Variable,
        }
        impl<const D: usize, K: Basic> Drop for Held<'_, D, K> {
            fn drop(&mut self) {
                *self.home.0.borrow_mut() = self.tensor.clone().into_dispatch();
            }
        }
        let tensor = Tensor::from_dispatch(self.0.0.borrow().clone());
        let mut held = Held { tensor, home: &self.0 };
        held.tensor.inplace(change);
        drop(held);
        self.0
    }
}

impl FromArg<Burn> for Device {
    fn from_arg(_: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Device(device)) = arg { Some(device.clone()) } else { None })
    }
}

impl FromArg<Burn> for DType {
    fn from_arg(_: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        let Arg::DType(name) = arg else { return Ok(None) };
        let found = DTYPES.iter().find(|(neutral, _)| neutral == name);
        found.map(|(_, native)| Some(*native)).ok_or_else(|| Fault::NotOffered(format!("burn has no dtype {name}")))
    }
}

/// A dtype of one kind.
pub struct Of<K>(pub DType, PhantomData<K>);

impl<K: TensorKind> FromArg<Burn> for Of<K> {
    fn from_arg(burn: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        Ok(DType::from_arg(burn, arg)?.filter(|dtype| kind_of(*dtype) == K::KIND).map(|dtype| Self(dtype, PhantomData)))
    }
}

impl FromArg<Burn> for FloatDType {
    fn from_arg(burn: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        Ok(Of::<Float>::from_arg(burn, arg)?.map(|dtype| dtype.0.into()))
    }
}

impl FromArg<Burn> for IntDType {
    fn from_arg(burn: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        Ok(Of::<Int>::from_arg(burn, arg)?.map(|dtype| dtype.0.into()))
    }
}

impl<const D: usize> FromArg<Burn> for [usize; D] {
    fn from_arg(burn: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        let Some(shape) = Vec::<usize>::from_arg(burn, arg)? else { return Ok(None) };
        refuse_rank(shape.len())?;
        Ok(shape.try_into().ok())
    }
}

fn refuse_rank(rank: usize) -> Result<(), Fault> {
    match rank {
        0 => Err(Fault::NotOffered("burn has no tensors of rank 0: one number is a vector of one element".into())),
        1..=4 => Ok(()),
        _ => Err(Fault::NotOffered(format!("this worker compiles no tensors of rank {rank}"))),
    }
}

/// Plain numbers for a tensor of one rank; what they are converted to is for the dtype to say.
pub struct Numbers<const D: usize>(pub TensorData);
/// Plain numbers that are literals of one kind.
pub struct Literal<const D: usize, K>(pub TensorData, PhantomData<K>);

impl<const D: usize> FromArg<Burn> for Numbers<D> {
    fn from_arg(_: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        let Arg::Data(data) = arg else { return Ok(None) };
        refuse_rank(data.shape.len())?;
        Ok(if data.shape.len() == D { Some(Self(packed(data)?.0)) } else { None })
    }
}

impl<const D: usize, K: TensorKind> FromArg<Burn> for Literal<D, K> {
    fn from_arg(_: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        let Arg::Data(data) = arg else { return Ok(None) };
        refuse_rank(data.shape.len())?;
        let (made, kind) = packed(data)?;
        if data.shape.len() != D || kind != K::KIND {
            return Ok(None);
        }
        if kind != Kind::Int {
            return Ok(Some(Self(made, PhantomData)));
        }
        // Whole numbers without a suffix are of 32 bits in Rust.
        if data.flat.iter().any(|number| i32::try_from(number.int()).is_err()) {
            let why = "a literal beyond 32 bits has no type until one is written: without a suffix it doesn't compile";
            return Err(Fault::NotOffered(why.into()));
        }
        Ok(Some(Self(made.convert::<i32>(), PhantomData)))
    }
}

fn packed(data: &Data) -> Result<(TensorData, Kind), Fault> {
    let shape = data.shape.as_slice();
    let all = |is: fn(&Number) -> bool| !data.flat.is_empty() && data.flat.iter().all(is);
    if data.flat.iter().any(|number| matches!(number, Number::Complex(..))) {
        return Err(Fault::NotOffered("burn has no complex numbers".into()));
    }
    if all(|number| matches!(number, Number::Bool(_))) {
        let truths: Vec<bool> = data.flat.iter().map(|number| *number == Number::Bool(true)).collect();
        return Ok((TensorData::new(truths, shape), Kind::Bool));
    }
    if all(|number| matches!(number, Number::Int(_))) {
        let small: Result<Vec<i64>, _> = data.flat.iter().map(|number| i64::try_from(number.int())).collect();
        let large: Result<Vec<u64>, _> = data.flat.iter().map(|number| u64::try_from(number.int())).collect();
        return match (small, large) {
            (Ok(small), _) => Ok((TensorData::new(small, shape), Kind::Int)),
            (_, Ok(large)) => Ok((TensorData::new(large, shape), Kind::Int)),
            _ => Err(Fault::NotOffered("burn has no integers of more than 64 bits".into())),
        };
    }
    let fractions: Vec<f64> = data.flat.iter().map(|number| number.float()).collect();
    Ok((TensorData::new(fractions, shape), Kind::Float))
}

/// Host memory as burn takes it: by a copy of its numbers.
pub struct Memory<K>(pub TensorData, pub DType, PhantomData<K>);

impl<K: TensorKind> FromArg<Burn> for Memory<K> {
    fn from_arg(burn: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        let Some(buffer) = Rc::<RefCell<HostBuffer>>::from_arg(burn, arg)? else { return Ok(None) };
        let data = match buffer.borrow().view() {
            View::F32(memory) => TensorData::from(memory),
            View::F64(memory) => TensorData::from(memory),
            View::I64(memory) => TensorData::from(memory),
            View::U64(memory) => TensorData::from(memory),
        };
        let dtype = data.dtype();
        Ok((kind_of(dtype) == K::KIND).then(|| Self(data, dtype, PhantomData)))
    }
}

// --- back to the wire ------------------------------------------------------------------------------

impl<const D: usize, K: Basic> IntoValue<Burn> for Tensor<D, K> {
    fn into_value(self) -> Value<Burn> {
        Value::Tensor(Variable::new(self.into_dispatch()))
    }
}

impl IntoValue<Burn> for Variable {
    fn into_value(self) -> Value<Burn> {
        Value::Tensor(self)
    }
}

impl IntoValue<Burn> for Device {
    fn into_value(self) -> Value<Burn> {
        Value::Device(self)
    }
}
