//! candle's dtypes by their neutral names, and numbers as the types behind them.

use candle_core::{DType, Device, Shape, Tensor, WithDType};
use float8::F8E4M3;
use half::{bf16, f16};
use worker::{Arg, Data, Fault, FromArg, Number};

use crate::Candle;
use crate::errors::Refused;

/// Neutral name -> candle's. The last four can be named and hold nothing yet.
pub const NAMES: [(&str, DType); 14] = [
    ("uint8", DType::U8),
    ("uint32", DType::U32),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("float16", DType::F16),
    ("bfloat16", DType::BF16),
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("float8_e4m3fn", DType::F8E4M3),
    ("float6_e2m3fn", DType::F6E2M3),
    ("float6_e3m2fn", DType::F6E3M2),
    ("float4_e2m1fn", DType::F4),
    ("float8_e8m0fnu", DType::F8E8M0),
];

/// Return the neutral name of a dtype.
pub fn name(dtype: DType) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == dtype).map_or_else(|| dtype.as_str(), |(name, _)| name)
}

/// Return the dtype of a neutral name.
pub fn dtype(name: &str) -> Result<DType, Fault> {
    let known = NAMES.iter().find(|(known, _)| *known == name);
    known.map(|(_, dtype)| *dtype).ok_or_else(|| Fault::NotOffered(format!("candle has no dtype {name}")))
}

impl FromArg<Candle> for DType {
    fn from_arg(_: &Candle, arg: &Arg<Candle>) -> Result<Option<Self>, Fault> {
        if let Arg::DType(name) = arg { dtype(name).map(Some) } else { Ok(None) }
    }
}

/// A type of candle's elements, made of plain numbers and back.
pub trait Native: WithDType {
    /// Return the number as this type holds it.
    fn native(number: Number) -> Self;
    /// Return it as a plain number.
    fn plain(self) -> Number;
}

macro_rules! whole {
    ($($native:ty),*) => {$(impl Native for $native {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a type holds what it holds")]
        fn native(number: Number) -> Self { number.int() as Self }
        fn plain(self) -> Number { Number::Int(self.into()) }
    })*};
}

macro_rules! fraction {
    ($($native:ty),*) => {$(impl Native for $native {
        fn native(number: Number) -> Self { <Self as WithDType>::from_f64(number.float()) }
        fn plain(self) -> Number { Number::Float(WithDType::to_f64(self)) }
    })*};
}

whole!(u8, u32, i16, i32, i64);
fraction!(f16, bf16, f32, f64);

impl Native for F8E4M3 {
    fn native(number: Number) -> Self {
        Self::from_f64(number.float())
    }
    fn plain(self) -> Number {
        // candle's own conversion of this type calls itself for ever.
        Number::Float(Self::to_f64(&self))
    }
}

/// Evaluate an expression with the type of a dtype's elements; the last one where there is no such type.
macro_rules! typed {
    ($dtype:expr, $native:ident => $body:expr, _ => $other:expr) => {
        match $dtype {
            DType::U8 => {
                type $native = u8;
                $body
            }
            DType::U32 => {
                type $native = u32;
                $body
            }
            DType::I16 => {
                type $native = i16;
                $body
            }
            DType::I32 => {
                type $native = i32;
                $body
            }
            DType::I64 => {
                type $native = i64;
                $body
            }
            DType::F16 => {
                type $native = f16;
                $body
            }
            DType::BF16 => {
                type $native = bf16;
                $body
            }
            DType::F32 => {
                type $native = f32;
                $body
            }
            DType::F64 => {
                type $native = f64;
                $body
            }
            DType::F8E4M3 => {
                type $native = F8E4M3;
                $body
            }
            _ => $other,
        }
    };
}

/// Make a tensor of numbers in a dtype.
pub fn tensor(data: &Data, dtype: DType, device: &Device) -> Result<Tensor, Refused> {
    fn of<T: Native>(data: &Data, device: &Device) -> candle_core::Result<Tensor> {
        let numbers: Vec<T> = data.flat.iter().map(|number| T::native(*number)).collect();
        Tensor::from_vec(numbers, Shape::from(data.shape.clone()), device)
    }
    if data.flat.iter().any(|number| matches!(number, Number::Complex(..))) {
        return Err(Fault::NotOffered("candle has no complex numbers".into()).into());
    }
    // What has no type in Rust can only be cast to.
    Ok(typed!(dtype, Native => of::<Native>(data, device)?, _ => of::<f32>(data, device)?.to_dtype(dtype)?))
}

/// Fill a shape with a number in a dtype.
pub fn full(shape: Vec<usize>, number: Number, dtype: DType, device: &Device) -> Result<Tensor, Refused> {
    Ok(
        typed!(dtype, T => Tensor::full(T::native(number), shape, device)?, _ => Tensor::full(number.float() as f32, shape, device)?.to_dtype(dtype)?),
    )
}

/// Count upwards in a dtype.
pub fn ramp(count: usize, start: i64, shape: Vec<usize>, dtype: DType, device: &Device) -> Result<Tensor, Refused> {
    let (first, end) = (Number::Int(start.into()), Number::Int(i128::from(start) + count as i128));
    let counted = typed!(dtype, T => Tensor::arange(T::native(first), T::native(end), device)?, _ => {
        Tensor::arange(first.float() as f32, end.float() as f32, device)?.to_dtype(dtype)?
    });
    Ok(counted.reshape(shape)?)
}

/// Return the elements, row by row.
pub fn numbers(tensor: &Tensor) -> Result<Vec<Number>, Refused> {
    let flat = tensor.to_device(&Device::Cpu)?.flatten_all()?;
    typed!(flat.dtype(), T => Ok(flat.to_vec1::<T>()?.into_iter().map(Native::plain).collect()), _ => Ok(flat.to_dtype(DType::F32)?.to_vec1::<f32>()?.into_iter().map(Native::plain).collect()))
}

/// Return the one element.
pub fn item(tensor: &Tensor) -> Result<Number, Refused> {
    typed!(tensor.dtype(), T => Ok(tensor.to_scalar::<T>()?.plain()), _ => Ok(tensor.to_dtype(DType::F32)?.to_scalar::<f32>()?.plain()))
}

/// Make a tensor of literals, in the types that they have in Rust when nothing else says.
pub fn literal(data: &Data, device: &Device) -> Result<Tensor, Refused> {
    let refuse = |why: &str| Err(Fault::NotOffered(why.into()).into());
    match data.flat.first() {
        Some(Number::Bool(_)) => refuse("candle takes no truths: bool has no dtype"),
        Some(Number::Complex(..)) => refuse("candle has no complex numbers"),
        Some(Number::Float(_)) | None => tensor(data, DType::F64, device),
        Some(Number::Int(_)) if data.flat.iter().any(|number| i32::try_from(number.int()).is_err()) => {
            refuse("a literal beyond 32 bits has no type until one is written: without a suffix it doesn't compile")
        }
        Some(Number::Int(_)) => tensor(data, DType::I32, device),
    }
}
