//! candle's operations: each expression is what runs, and what is shown.

use std::cell::RefCell;
use std::rc::Rc;

use candle_core::{DType, Device, DeviceLocation, IndexOp, Tensor};
use worker::{Arg, Data, Fault, FromArg, HostBuffer, IntoValue, Number, Operation, Value, View, operations};

use crate::Candle;
use crate::dtypes;
use crate::errors::Refused;

impl FromArg<Candle> for Tensor {
    fn from_arg(_: &Candle, arg: &Arg<Candle>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Tensor(tensor)) = arg { Some(tensor.clone()) } else { None })
    }
}

impl FromArg<Candle> for Device {
    fn from_arg(_: &Candle, arg: &Arg<Candle>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Device(device)) = arg { Some(device.clone()) } else { None })
    }
}

impl IntoValue<Candle> for Tensor {
    fn into_value(self) -> Value<Candle> {
        Value::Tensor(self)
    }
}

impl IntoValue<Candle> for Device {
    fn into_value(self) -> Value<Candle> {
        Value::Device(self)
    }
}

type Buffer = Rc<RefCell<HostBuffer>>;

/// Not in the table, since candle has no such concept: creation without a device, a default device, pinned memory, masks, equality of
/// whole values, outputs given by the caller, in-place arithmetic, a move that names a dtype too, short ways to a device, devices as text,
/// a count of accelerators, NumPy.
pub fn table() -> Vec<Operation<Candle>> {
    operations! { Candle, candle;
        tensor(values: Data, dtype: DType, device: Device) as "Tensor::new(&{0 as 1}, &{2})?" => dtypes::tensor(&values, dtype, &device)?;
        literal(values: Data, device: Device) as "Tensor::new(&{0}, &{1})?" => dtypes::literal(&values, &device)?;
        full(shape: Vec<usize>, value: Number, dtype: DType, device: Device) as "Tensor::full({1 as 2}, {0}, &{3})?" =>
            dtypes::full(shape, value, dtype, &device)?;
        ramp(count: usize, start: i64, shape: Vec<usize>, dtype: DType, device: Device)
            as "Tensor::arange({1 as 3}, {1 as 3} + {0 as 3}, &{4})?.reshape({2})?" => dtypes::ramp(count, start, shape, dtype, &device)?;
        zeros(shape: Vec<usize>, dtype: DType, device: Device) => Tensor::zeros(shape, dtype, &device)?;
        zeros_like(x: Tensor) => x.zeros_like()?;
        // A slice is copied; candle has no tensor over memory that it doesn't own.
        from_buffer(buffer: Buffer, device: Device) as "Tensor::from_slice(&{0}, {0}.len(), &{1})?" => from_slice(&buffer.borrow(), &device)?;
        from_buffer_copy(buffer: Buffer, device: Device) as "Tensor::from_slice(&{0}, {0}.len(), &{1})?" => from_slice(&buffer.borrow(), &device)?;

        // `&x + &y` is the same, and takes equal shapes alone.
        add(x: Tensor, y: Tensor) => x.broadcast_add(&y)?;
        add(x: Tensor, y: f64) => (&x + y)?;
        add(x: f64, y: Tensor) => (x + &y)?;
        sub(x: Tensor, y: Tensor) => x.broadcast_sub(&y)?;
        sub(x: Tensor, y: f64) => (&x - y)?;
        sub(x: f64, y: Tensor) => (x - &y)?;
        mul(x: Tensor, y: Tensor) => x.broadcast_mul(&y)?;
        mul(x: Tensor, y: f64) => (&x * y)?;
        mul(x: f64, y: Tensor) => (x * &y)?;
        div(x: Tensor, y: Tensor) => x.broadcast_div(&y)?;
        div(x: Tensor, y: f64) => (&x / y)?;
        div(x: f64, y: Tensor) => (x / &y)?;
        less(x: Tensor, y: Tensor) => x.broadcast_lt(&y)?;
        matmul(x: Tensor, y: Tensor) => x.matmul(&y)?;
        sum(x: Tensor) => x.sum_all()?;
        // Truths are of u8; this operation broadcasts nothing by itself.
        where(condition: Tensor, x: Tensor, y: Tensor) => condition.broadcast_as(x.shape())?.where_cond(&x, &y)?;
        cat(x: Tensor, y: Tensor) => Tensor::cat(&[&x, &y], 0)?;
        stack(x: Tensor, y: Tensor) => Tensor::stack(&[&x, &y], 0)?;

        embedding(table: Tensor, ids: Tensor) => table.embedding(&ids)?;
        index(x: Tensor, ids: Tensor) => x.i(&ids)?;
        index_select(x: Tensor, ids: Tensor) => x.index_select(&ids, 0)?;
        gather(x: Tensor, ids: Tensor) => x.gather(&ids, 0)?;
        corner(x: Tensor) => x.i((0, 0))?;
        item(x: Tensor) as "{0}.to_scalar::<f32>()?" => dtypes::item(&x)?;

        element(x: Tensor, at: usize) => x.i(at)?;
        tail(x: Tensor, start: usize) => x.i(start..)?;
        transpose(x: Tensor) => x.t()?;
        expand(x: Tensor, shape: Vec<usize>) => x.broadcast_as(shape)?;
        reshape(x: Tensor, shape: Vec<usize>) => x.reshape(shape)?;

        set_tail(x: Tensor, start: usize, y: Tensor) as "{ {0}.slice_set(&{2}, 0, {1})?; {0}.clone() }" => { x.slice_set(&y, 0, start)?; x };
        copy_(x: Tensor, y: Tensor) as "{ {0}.slice_set(&{1}, 0, 0)?; {0}.clone() }" => { x.slice_set(&y, 0, 0)?; x };

        to(x: Tensor, device: Device) => x.to_device(&device)?;
        // There is one move, so that whether it waits is asked of it.
        to_async(x: Tensor, device: Device) => x.to_device(&device)?;
        to_copy(x: Tensor, device: Device) => x.to_device(&device)?.copy()?;
        cast(x: Tensor, dtype: DType) => x.to_dtype(dtype)?;
        device_of(x: Tensor) => x.device().clone();
        clone_device(device: Device) => device.clone();
        ordinal(device: Device) as "{0}.location()" => ordinal(&device);
        best_device() as "Device::cuda_if_available(0)?" =>
            if candle.kind == "metal" { Device::metal_if_available(0)? } else { Device::cuda_if_available(0)? };
        to_list(x: Tensor) as "{0}.to_vec1::<f32>()?" => dtypes::numbers(&x)?;
    }
}

/// The phrases of what the interpreter does itself, and of arguments.
pub fn phrases() -> Vec<(&'static str, &'static str)> {
    vec![
        ("let", "let mut {0} = {1};"),
        ("tensor/0-dim", "Tensor::new({0 as 1}, &{2})?"),
        ("literal/0-dim", "Tensor::new({0}, &{1})?"),
        // A vector is aligned as its allocator likes; a copy of it doesn't care.
        ("buffer", "vec!{0 as 2}"),
        ("write_buffer", "{0}.fill({1});"),
        ("observe", "println!(\"{1}{}\", {0});"),
        ("metadata", "println!(\"{1}{:?} {:?} {:?}\", {0}.device().location(), {0}.dtype(), {0}.shape());"),
        ("show", "println!(\"{1}{:?}\", {0});"),
        ("drop", "drop({0});"),
        ("same", "println!(\"{2}{}\", {0}.id() == {1}.id());"),
        ("compare", "println!(\"{2}{}\", {0}.same_device(&{1}));"),
        ("barrier", "{0}.synchronize()?;"),
        ("comment", "// {0}"),
        ("list", "({0})"),
        ("list/1", "{0}"),
        ("repeat", "[{0}; {1}]"),
        (
            "script",
            "#![allow(unused_imports, unused_mut)]\n\nuse std::collections::HashMap;\n\nuse candle_core::{DType, Device, IndexOp, Module, Tensor};\nuse candle_nn::{Linear, VarBuilder, linear_no_bias};\n\nfn main() -> candle_core::Result<()> {\n    {0}\n    Ok(())\n}",
        ),
        ("uint8", "DType::U8"),
        ("uint32", "DType::U32"),
        ("int16", "DType::I16"),
        ("int32", "DType::I32"),
        ("int64", "DType::I64"),
        ("float16", "DType::F16"),
        ("bfloat16", "DType::BF16"),
        ("float32", "DType::F32"),
        ("float64", "DType::F64"),
        ("float8_e4m3fn", "DType::F8E4M3"),
        ("float6_e2m3fn", "DType::F6E2M3"),
        ("float6_e3m2fn", "DType::F6E3M2"),
        ("float4_e2m1fn", "DType::F4"),
        ("float8_e8m0fnu", "DType::F8E8M0"),
        ("number/uint8", "{0}u8"),
        ("number/uint32", "{0}u32"),
        ("number/int16", "{0}i16"),
        ("number/int32", "{0}i32"),
        ("number/int64", "{0}i64"),
        ("number/float16", "half::f16::from_f32({0})"),
        ("number/bfloat16", "half::bf16::from_f32({0})"),
        ("number/float32", "{0}f32"),
        ("number/float64", "{0}f64"),
        ("number/float8_e4m3fn", "float8::F8E4M3::from_f32({0})"),
    ]
}

fn from_slice(buffer: &HostBuffer, device: &Device) -> Result<Tensor, Refused> {
    Ok(match buffer.view() {
        View::F32(view) => Tensor::from_slice(view, view.len(), device)?,
        View::F64(view) => Tensor::from_slice(view, view.len(), device)?,
        View::I64(view) => Tensor::from_slice(view, view.len(), device)?,
        View::U64(_) => return Err(Fault::NotOffered("candle has no dtype uint64".into()).into()),
    })
}

fn ordinal(device: &Device) -> Value<Candle> {
    match device.location() {
        DeviceLocation::Cpu => Value::None,
        DeviceLocation::Cuda { gpu_id } | DeviceLocation::Metal { gpu_id } => Value::Number(Number::Int(gpu_id as i128)),
    }
}
