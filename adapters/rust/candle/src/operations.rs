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
        from_buffer(buffer: Buffer, device: Device) as "Tensor::from_slice({0}, {0}.len(), &{1})?" => from_slice(&buffer.borrow(), &device)?;
        from_buffer_copy(buffer: Buffer, device: Device) as "Tensor::from_slice({0}, {0}.len(), &{1})?" => from_slice(&buffer.borrow(), &device)?;

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
        where(condition: Tensor, x: Tensor, y: Tensor) => condition.where_cond(&x, &y)?;
        cat(x: Tensor, y: Tensor) => Tensor::cat(&[&x, &y], 0)?;
        stack(x: Tensor, y: Tensor) => Tensor::stack(&[&x, &y], 0)?;

        embedding(table: Tensor, ids: Tensor) => table.embedding(&ids)?;
        index(x: Tensor, ids: Tensor) => x.i(&ids)?;
        index_select(x: Tensor, ids: Tensor) => x.index_select(&ids, 0)?;
        gather(x: Tensor, ids: Tensor) => x.gather(&ids, 0)?;
        corner(x: Tensor) => x.i((0, 0))?;
        item(x: Tensor) as "{0}.to_scalar()?" => dtypes::item(&x)?;

        element(x: Tensor, at: usize) => x.i(at)?;
        tail(x: Tensor, start: usize) => x.i(start..)?;
        transpose(x: Tensor) => x.t()?;
        expand(x: Tensor, shape: Vec<usize>) => x.broadcast_as(shape)?;
        reshape(x: Tensor, shape: Vec<usize>) => x.reshape(shape)?;

        set_tail(x: Tensor, start: usize, y: Tensor) as "{0}.slice_set(&{2}, 0, {1})?" => { x.slice_set(&y, 0, start)?; x };
        copy_(x: Tensor, y: Tensor) as "{0}.slice_set(&{1}, 0, 0)?" => { x.slice_set(&y, 0, 0)?; x };

        to(x: Tensor, device: Device) => x.to_device(&device)?;
        to_copy(x: Tensor, device: Device) => x.to_device(&device)?.copy()?;
        cast(x: Tensor, dtype: DType) => x.to_dtype(dtype)?;
        device_of(x: Tensor) => x.device().clone();
        clone_device(device: Device) => device.clone();
        ordinal(device: Device) as "{0}.location()" => ordinal(&device);
        best_device() as "Device::cuda_if_available(0)?" =>
            if candle.kind == "metal" { Device::metal_if_available(0)? } else { Device::cuda_if_available(0)? };
        to_list(x: Tensor) as "{0}.to_vec1()?" => dtypes::numbers(&x)?;
    }
}

/// The phrases of what the interpreter does itself, and of arguments.
pub fn phrases() -> Vec<(&'static str, &'static str)> {
    vec![("let", "let {0} = {1};"), ("observe", "println!(\"{}\", {0});")]
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
