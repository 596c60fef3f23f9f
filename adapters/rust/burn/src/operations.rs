//! burn's operations: the very expressions that run, and that are shown.
//!
//! Rank and kind are part of a tensor's type, so that each expression is compiled once for each of them; the first that fits runs.

use burn::tensor::kind::{Basic, Numeric, Ordered, TensorKind};
use burn::tensor::module::embedding;
use burn::tensor::{Bool, Device, Float, FloatDType, Int, IntDType, Tensor};
use worker::{Fault, Number, Operation, Value, operations};

use crate::Burn;
use crate::tensors::{Literal, Memory, Numbers, Of, Place, Variable, WRITTEN};

/// Return the whole table.
pub fn operations() -> Vec<Operation<Burn>> {
    let mut table = devices();
    table.extend(ranked::<1>());
    table.extend(ranked::<2>());
    table.extend(ranked::<3>());
    table.extend(ranked::<4>());
    table.extend(matrices::<Float>());
    table.extend(matrices::<Int>());
    table.extend(matrices::<Bool>());
    table.extend(looked_up());
    table.extend(crate::modules::operations());
    table.extend(refused());
    table
}

/// Return the phrases of what the interpreter does itself, of arguments, and of a whole program.
pub fn phrases() -> Vec<(&'static str, &'static str)> {
    let mut phrases = vec![
        ("let", "let mut {0} = {1};"),
        ("value", "{0}.clone()"),
        ("observe", "println!(\"{1}{}\", {0});"),
        ("show", "println!(\"{1}{:?}\", {0});"),
        ("metadata", "println!(\"{1}{:?} {:?} on {:?}\", {name 0}.shape(), {name 0}.dtype(), {name 0}.device());"),
        ("drop", "drop({name 0});"),
        ("same", "// Whether two tensors share storage is only to be seen below this interface: Tensor::try_into_primitive."),
        ("compare", "println!(\"{2}{}\", {0} == {1});"),
        ("barrier", "{0}.sync().unwrap();"),
        ("comment", "// {0}"),
        ("repeat", "[{0}; {1}]"),
        ("cast/bool", "{0}.bool()"),
        // A vector is aligned as its allocator likes; a copy of it doesn't care.
        ("buffer/float32", "Vec::<f32>::from({0 as 2})"),
        ("buffer/float64", "Vec::<f64>::from({0 as 2})"),
        ("buffer/int64", "Vec::<i64>::from({0 as 2})"),
        ("buffer/uint64", "Vec::<u64>::from({0 as 2})"),
        ("write_buffer", "{name 0}.fill({1});"),
        ("number/int", "{0}i64"),
        ("number/float", "{0}f64"),
        ("number/int64", "{0}i64"),
        ("number/uint64", "{0}u64"),
        ("script", SCRIPT),
    ];
    phrases.extend(WRITTEN);
    phrases.extend(crate::modules::phrases());
    phrases
}

const SCRIPT: &str = r#"#![recursion_limit = "256"]
#![allow(unused_imports, unused_mut, deprecated)]

use burn::module::{Module, Param, RunningState};
use burn::nn::Linear;
use burn::tensor::module::embedding;
use burn::tensor::{Bool, BoolStore, DType, Device, DeviceIndex, DeviceKind, Float, FloatDType, Int, IntDType, Tensor};

fn main() {
    {0}
}"#;

fn ranked<const D: usize>() -> Vec<Operation<Burn>> {
    let mut table = floats::<D>();
    table.extend(ints::<D>());
    table.extend(truths::<D>());
    table.extend(numbers::<D, Float>());
    table.extend(numbers::<D, Int>());
    table.extend(values::<D, Float>());
    table.extend(values::<D, Int>());
    table.extend(values::<D, Bool>());
    table
}

fn devices() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        clone_device(device: Device) => device.clone();
        device_of(x: Variable) as "{0}.device()" => x.device();
    }
}

/// What every tensor has.
fn values<const D: usize, K: Basic + TensorKind>() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        tensor(values: Numbers<D>, dtype: Of<K>, device: Device) as "Tensor::<{rank 0}, {kind 1}>::from_data({0 as 1}, (&{2}, {1}))"
            => Tensor::<D, K>::from_data(values.0, (&device, dtype.0));
        literal(values: Literal<D, K>, device: Device) as "Tensor::<{rank 0}, {kind 0}>::from_data({0}, &{1})"
            => Tensor::<D, K>::from_data(values.0, &device);
        full(shape: [usize; D], value: f64, dtype: Of<K>, device: Device) as "Tensor::<{rank 0}, {kind 2}>::full({0}, {1}, (&{3}, {2}))"
            => Tensor::<D, K>::full(shape, value, (&device, dtype.0));
        zeros(shape: [usize; D], dtype: Of<K>, device: Device) as "Tensor::<{rank 0}, {kind 1}>::zeros({0}, (&{2}, {1}))"
            => Tensor::<D, K>::zeros(shape, (&device, dtype.0));
        zeros_like(x: Tensor<D, K>) => x.zeros_like();
        where(condition: Tensor<D, Bool>, x: Tensor<D, K>, y: Tensor<D, K>) => y.mask_where(condition, x);
        cat(x: Tensor<D, K>, y: Tensor<D, K>) => Tensor::cat(vec![x, y], 0);
        array_equal(x: Tensor<D, K>, y: Tensor<D, K>) => x.equal(y).all();
        gather(x: Tensor<D, K>, ids: Tensor<D, Int>) => x.gather(0, ids);
        index_select(x: Tensor<D, K>, ids: Tensor<1, Int>) => x.select(0, ids);
        tail(x: Tensor<D, K>, start: usize) => x.slice_dim(0, start..);
        transpose(x: Tensor<D, K>) => x.transpose();
        expand(x: Tensor<D, K>, shape: [usize; D]) => x.expand(shape);
        reshape(x: Tensor<D, K>, shape: [usize; D]) => x.reshape(shape);
        set_tail(x: Tensor<D, K>, start: usize, y: Tensor<D, K>) => x.slice_assign([start..], y);
        to(x: Tensor<D, K>, device: Device) => x.to_device(&device);
        // There is one move, so that whether it waits is asked of it.
        to_async(x: Tensor<D, K>, device: Device) => x.to_device(&device);
        to_list(x: Variable) as "{0}.try_to_vec_as::<f64>().unwrap()" => x.read()?;
    }
}

/// What tensors of numbers have.
fn numbers<const D: usize, K: Ordered + TensorKind>() -> Vec<Operation<Burn>> {
    let mut table = scalars::<D, K>();
    table.extend(operations! { Burn, burn;
        add(x: Tensor<D, K>, y: Tensor<D, K>) => x + y;
        sub(x: Tensor<D, K>, y: Tensor<D, K>) => x - y;
        mul(x: Tensor<D, K>, y: Tensor<D, K>) => x * y;
        div(x: Tensor<D, K>, y: Tensor<D, K>) => x / y;
        less(x: Tensor<D, K>, y: Tensor<D, K>) => x.lower(y);
        matmul(x: Tensor<D, K>, y: Tensor<D, K>) => x.matmul(y);
        sum(x: Tensor<D, K>) => x.sum();
        add_(x: Place<D, K>, y: Tensor<D, K>) as "{ {name 0}.inplace(|x| x + {1}); {0} }" => x.inplace(|x| x + y);
        cast(x: Tensor<D, K>, _dtype: Of<Bool>) as "{0}.bool()" => x.bool();
    });
    table
}

/// A plain number on either side of a tensor of numbers.
fn scalars<const D: usize, K: Numeric + TensorKind>() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        add(x: Tensor<D, K>, y: i64) => x + y;
        add(x: Tensor<D, K>, y: bool) => x + y;
        add(x: Tensor<D, K>, y: f64) => x + y;
        // Without its type a number on the left leaves that of the sum open.
        add(x: i64, y: Tensor<D, K>) as "{plain 0} + {1}" => x + y;
        add(_x: bool, _y: Tensor<D, K>) => Err::<Value<Burn>, _>(truth_first())?;
        add(x: f64, y: Tensor<D, K>) => x + y;
        mul(x: Tensor<D, K>, y: i64) => x * y;
        mul(x: Tensor<D, K>, y: bool) => x * y;
        mul(x: Tensor<D, K>, y: f64) => x * y;
        mul(x: i64, y: Tensor<D, K>) as "{plain 0} * {1}" => x * y;
        mul(_x: bool, _y: Tensor<D, K>) => Err::<Value<Burn>, _>(truth_first())?;
        mul(x: f64, y: Tensor<D, K>) => x * y;
    }
}

fn floats<const D: usize>() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        tensor_uncommitted(values: Numbers<D>, dtype: FloatDType) as "Tensor::<{rank 0}, {kind 1}>::from({0 as 1})"
            => Tensor::<D>::from(values.0).cast(dtype);
        zeros_uncommitted(shape: [usize; D]) as "Tensor::<{rank 0}>::zeros({0}, &Default::default())"
            => Tensor::<D>::zeros(shape, &Default::default());
        cast(x: Tensor<D>, dtype: FloatDType) as "{0}.cast({kind 1}DType::from({1}))" => x.cast(dtype);
        cast(x: Tensor<D>, dtype: IntDType) => x.cast(dtype);
        item(x: Tensor<D>) as "{0}.into_scalar::<f64>()" => Number::Float(x.into_scalar::<f64>());
        ramp(count: i64, start: i64, shape: [usize; D], dtype: FloatDType, device: Device)
            as "Tensor::<1, Int>::arange({1}..{1} + {0}, &{4}).reshape({2}).cast({kind 3}DType::from({3}))"
            => Tensor::<1, Int>::arange(start..start + count, &device).reshape(shape).cast(dtype);
    }
}

fn ints<const D: usize>() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        tensor_uncommitted(values: Numbers<D>, dtype: IntDType) as "Tensor::<{rank 0}, {kind 1}>::from({0 as 1})"
            => Tensor::<D, Int>::from(values.0).cast(dtype);
        cast(x: Tensor<D, Int>, dtype: FloatDType) => x.cast(dtype);
        cast(x: Tensor<D, Int>, dtype: IntDType) => x.cast(dtype);
        item(x: Tensor<D, Int>) as "{0}.into_scalar()" => Number::Int(x.into_scalar::<i64>().into());
        ramp(count: i64, start: i64, shape: [usize; D], dtype: IntDType, device: Device)
            as "Tensor::<1, Int>::arange({1}..{1} + {0}, &{4}).reshape({2}).cast({kind 3}DType::from({3}))"
            => Tensor::<1, Int>::arange(start..start + count, &device).reshape(shape).cast(dtype);
    }
}

fn truths<const D: usize>() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        tensor_uncommitted(values: Numbers<D>, _dtype: Of<Bool>) as "Tensor::<{rank 0}, {kind 1}>::from({0 as 1})" => Tensor::<D, Bool>::from(values.0);
        cast(x: Tensor<D, Bool>, dtype: FloatDType) => x.cast(dtype);
        cast(x: Tensor<D, Bool>, dtype: IntDType) => x.cast(dtype);
        item(x: Tensor<D, Bool>) as "{0}.into_scalar()" => x.into_scalar::<bool>();
    }
}

/// What changes the rank, in the ranks that cases use.
fn matrices<K: Basic + TensorKind>() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        // The first of these is shown: cases stack matrices.
        stack(x: Tensor<2, K>, y: Tensor<2, K>) => Tensor::stack::<3>(vec![x, y], 0);
        stack(x: Tensor<1, K>, y: Tensor<1, K>) => Tensor::stack::<2>(vec![x, y], 0);
        stack(x: Tensor<3, K>, y: Tensor<3, K>) => Tensor::stack::<4>(vec![x, y], 0);
        element(x: Tensor<2, K>, i: usize) => x.select_dim::<1>(0, i);
        element(x: Tensor<3, K>, i: usize) => x.select_dim::<2>(0, i);
        corner(x: Tensor<2, K>) => x.slice([0..1, 0..1]);
        mask(x: Tensor<2, K>, mask: Tensor<1, Bool>) as "{0}.mask_select({1}.unsqueeze_dim::<2>(1).expand({name 0}.dims()))"
            => x.clone().mask_select(mask.unsqueeze_dim::<2>(1).expand(x.dims()));
        from_buffer(memory: Memory<K>, device: Device) as "Tensor::<1, {kind 0}>::from_data({name 0}.as_slice(), (&{1}, {dtype 0}))"
            => Tensor::<1, K>::from_data(memory.0, (&device, memory.1));
    }
}

fn looked_up() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        embedding(table: Tensor<2>, ids: Tensor<1, Int>) => embedding(table, ids.unsqueeze());
        element(x: Variable, _i: usize) => Err::<Value<Burn>, _>(without("element of rank 0", &x))?;
    }
}

/// What doesn't compile, each with its reason. Rows of these stand last.
fn refused() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        add(x: Variable, y: Variable) => Err::<Value<Burn>, _>(mixed("sum", &x, &y))?;
        sub(x: Variable, y: Variable) => Err::<Value<Burn>, _>(mixed("difference", &x, &y))?;
        mul(x: Variable, y: Variable) => Err::<Value<Burn>, _>(mixed("product", &x, &y))?;
        div(x: Variable, y: Variable) => Err::<Value<Burn>, _>(mixed("quotient", &x, &y))?;
        less(x: Variable, y: Variable) => Err::<Value<Burn>, _>(mixed("comparison", &x, &y))?;
        matmul(x: Variable, y: Variable) => Err::<Value<Burn>, _>(mixed("matrix product", &x, &y))?;
        sum(x: Variable) => Err::<Value<Burn>, _>(without("sum", &x))?;
        cast(x: Variable, _dtype: Of<Bool>) => Err::<Value<Burn>, _>(without("cast to truths", &x))?;
    }
}

fn mixed(what: &str, x: &Variable, y: &Variable) -> Fault {
    Fault::NotOffered(format!("burn has no {what} of {} and {}: it doesn't compile", x.says(), y.says()))
}

fn without(what: &str, x: &Variable) -> Fault {
    Fault::NotOffered(format!("burn has no {what} of {}: it doesn't compile", x.says()))
}

fn truth_first() -> Fault {
    Fault::NotOffered("burn takes a truth on the right of a tensor only: on the left it doesn't compile".into())
}
