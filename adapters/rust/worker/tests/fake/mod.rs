//! A framework of a few lines: two devices, a queue whose errors surface when it is waited for, and threads that panic.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;

use worker::{
    Arg, Comparison, Data, ErrorFact, Facts, Fault, Framework, FromArg, Identity, IntoValue, Kind, Number, Opaque, Operation, Place, Role,
    Roles, Value, operations,
};

/// A tensor: numbers on a device, a name of its storage, and whether looking at it is a mistake.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub device: Device,
    pub data: Rc<RefCell<Data>>,
    pub odd: Odd,
}

/// Whether looking at a tensor is a mistake of the worker's, or brings up an error of the framework's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    No,
    Own,
    Late,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device(pub &'static str, pub u32);

/// The framework, with the error that waits in its queue, if any.
#[derive(Default)]
pub struct Fake {
    made: Cell<u32>,
    late: RefCell<Option<ErrorFact>>,
    late_panic: Cell<bool>,
    default: Rc<Cell<&'static str>>,
}

pub struct DType(pub String);

fn error(kind: &str, text: impl Into<String>) -> Fault {
    Fault::Error(ErrorFact { kind: kind.into(), module: "fake".into(), bases: vec!["Error".into()], text: text.into() })
}

impl Framework for Fake {
    type Tensor = Tensor;
    type Device = Device;
    type Error = Fault;
    const NAME: &'static str = "fake";
    const MODULE: &'static str = "fake";
    const VARIABLES: &'static [&'static str] = &["PATH", "FAKE_IS_NOT_SET"];

    fn identity() -> Identity {
        Identity { version: "1.0".into(), ..Identity::default() }
    }
    fn kinds() -> Vec<(String, Kind)> {
        let both = Roles::from([
            ("host".into(), Role::measured("cpu", "Cpu")),
            ("accelerator".into(), Role { mention: Some("the gpu".into()), ..Role::simulated("gpu", "Gpu::new()") }),
        ]);
        vec![("gpu".into(), Ok(both)), ("tpu".into(), Err("no TPU here".into()))]
    }
    fn dtypes() -> Vec<&'static str> {
        vec!["float32"]
    }
    fn phrases() -> Vec<(&'static str, &'static str)> {
        vec![("float32", "F32")]
    }
    fn environments() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        vec![("no-accelerator", vec![("FAKE_VISIBLE", "")])]
    }
    fn operations() -> Vec<Operation<Self>> {
        operations! { Fake, fake;
            tensor(values: Data, dtype: DType, device: Device) => { let _ = dtype.0; fake.tensor(values, device) };
            full(shape: Vec<usize>, value: Number, dtype: DType, device: Device) => {
                let _ = dtype;
                let count = shape.iter().product();
                fake.tensor(Data { shape, flat: vec![value; count] }, device)
            };
            zeros_uncommitted(shape: Vec<usize>) => {
                let count = shape.iter().product();
                fake.tensor(Data { shape, flat: vec![Number::Float(0.0); count] }, Device(fake.default.get(), 0))
            };
            add(x: Tensor, y: Tensor) => fake.add(&x, &y)?;
            add(x: Tensor, y: f64) as "{0}.plus({1})" => fake.each(&x, |number| number + y);
            matmul(x: Tensor, y: Tensor) => { let _ = x; fake.each(&y, |number| 2.0 * number) };
            tail(x: Tensor, start: usize) => { let _ = start; Tensor { ..x.clone() } };
            sub(x: Tensor, y: Tensor) => panics(&x, &y);
            mul(x: Tensor, y: Tensor) => { elsewhere(); let _ = y; x };
            div(x: Tensor, y: Tensor) => { let _ = y; fake.late.replace(Some(ErrorFact { kind: "Late".into(), module: "fake".into(), ..ErrorFact::default() })); x };
            sum(x: Tensor) => { fake.late_panic.set(true); x };
            stack(x: Tensor, y: Tensor) => { let _ = y; Tensor { odd: Odd::Own, ..x } };
            reshape(x: Tensor) => { let _ = x; chatter() };
            cat(x: Tensor, y: Tensor) => { let _ = y; Tensor { odd: Odd::Late, ..x } };
            corner(x: Tensor) => x;
            zeros_like(x: Tensor) => Tensor { device: Device("dsp", 0), ..x };
            transpose(x: Tensor) => { thread::sleep(std::time::Duration::from_secs(3600)); x };
            linear(weight: Tensor) => Opaque::new(weight, "a module");
            member(module: Opaque) => module.get::<Tensor>().expect("a module of this framework").clone();
            move_module(module: Opaque, device: Device) => { let _ = device; module };
            item(x: Tensor) => x.data.borrow().flat[0];
            to_list(x: Tensor) => x.data.borrow().flat.clone();
            to(x: Tensor, device: Device) => if x.device == device { x } else { Tensor { device, data: Rc::new(RefCell::new(x.data.borrow().clone())), odd: Odd::No } };
            to_async(x: Tensor, device: Device) => Tensor { device, data: Rc::new(RefCell::new(x.data.borrow().clone())), odd: Odd::No };
        }
    }

    fn open(_kind: &str, _roles: &Roles) -> Self {
        let fake = Self::default();
        fake.default.set("cpu");
        fake
    }
    fn device(&self, place: &Place) -> Result<Device, Fault> {
        self.made.set(self.made.get() + 1);
        match place.name.as_str() {
            "host" => Ok(Device("cpu", 0)),
            "accelerator" => Ok(Device("gpu", self.made.get())),
            other => Err(error("NoSuchDevice", format!("no device is {other}"))),
        }
    }
    fn missing(&self, place: &Place) -> Option<String> {
        (place.name == "absent").then(|| "Tpu::new()".into())
    }
    fn device_name(&self, device: &Device) -> String {
        device.0.into()
    }
    fn compare(&self, left: &Device, right: &Device) -> Comparison {
        Comparison { equal: left == right, mirrored: right == left, hash: None }
    }
    fn describe(&self, tensor: &Tensor) -> Facts {
        assert!(tensor.odd != Odd::Own, "nothing can be said of this one");
        if tensor.odd == Odd::Late {
            serde_json::json!(1)["a package's own panic"] = 2.into();
        }
        Facts { device: tensor.device.0.into(), dtype: "float32".into(), shape: tensor.data.borrow().shape.clone() }
    }
    fn simulated(&self, tensor: &Tensor) -> bool {
        tensor.device.0 != "cpu"
    }
    fn read(&self, tensor: &Tensor) -> Result<Vec<Number>, Fault> {
        self.barrier(&[])?;
        Ok(tensor.data.borrow().flat.clone())
    }
    fn same_object(&self, left: &Tensor, right: &Tensor) -> bool {
        Rc::ptr_eq(&left.data, &right.data) && left.device == right.device
    }
    fn storage(&self, tensor: &Tensor) -> Option<usize> {
        Some(Rc::as_ptr(&tensor.data).addr())
    }
    fn barrier(&self, _values: &[Tensor]) -> Result<(), Fault> {
        if self.late_panic.take() {
            elsewhere();
        }
        self.late.take().map_or(Ok(()), |error| Err(Fault::Error(error)))
    }
    fn scope(&self, name: &str, device: Option<&Device>) -> Result<Box<dyn Any>, Fault> {
        struct Restore(Rc<Cell<&'static str>>, &'static str);
        impl Drop for Restore {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        match (name, device) {
            ("default-device", Some(device)) => {
                let before = self.default.replace(device.0);
                Ok(Box::new(Restore(Rc::clone(&self.default), before)))
            }
            _ => Err(Fault::NotOffered(format!("fake has no {name} scope"))),
        }
    }
    fn poisoned(&self, error: &ErrorFact) -> bool {
        error.kind == "Late"
    }
}

impl Fake {
    fn tensor(&self, data: Data, device: Device) -> Tensor {
        Tensor { device, data: Rc::new(RefCell::new(data)), odd: Odd::No }
    }
    fn add(&self, x: &Tensor, y: &Tensor) -> Result<Tensor, Fault> {
        if x.device.0 != y.device.0 {
            return Err(error("DeviceMismatch", format!("device mismatch in add: {} and {}", x.device.0, y.device.0)));
        }
        let (left, right) = (x.data.borrow(), y.data.borrow());
        let flat = left.flat.iter().zip(&right.flat).map(|(a, b)| Number::Float(a.float() + b.float())).collect();
        Ok(self.tensor(Data { shape: left.shape.clone(), flat }, x.device))
    }
    fn each(&self, x: &Tensor, change: impl Fn(f64) -> f64) -> Tensor {
        let data = x.data.borrow();
        let flat = data.flat.iter().map(|number| Number::Float(change(number.float()))).collect();
        self.tensor(Data { shape: data.shape.clone(), flat }, x.device)
    }
}

/// Panic on another thread, as a runner of a device does.
fn elsewhere() {
    let runner = thread::Builder::new().name("runner".into()).spawn(|| panic!("the device is lost"));
    assert!(runner.expect("a thread starts").join().is_err());
}

impl FromArg<Fake> for Tensor {
    fn from_arg(_: &Fake, arg: &Arg<Fake>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Tensor(tensor)) = arg { Some(tensor.clone()) } else { None })
    }
}

impl FromArg<Fake> for Device {
    fn from_arg(_: &Fake, arg: &Arg<Fake>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Device(device)) = arg { Some(*device) } else { None })
    }
}

impl FromArg<Fake> for DType {
    fn from_arg(_: &Fake, arg: &Arg<Fake>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::DType(name) = arg { Some(Self(name.clone())) } else { None })
    }
}

impl IntoValue<Fake> for Tensor {
    fn into_value(self) -> Value<Fake> {
        Value::Tensor(self)
    }
}

fn panics(x: &Tensor, y: &Tensor) -> Tensor {
    panic!("not on the same device: {} and {}", x.device.0, y.device.0)
}

/// Do what frameworks do with the descriptors that they think are theirs.
fn chatter() -> Number {
    println!("chatter on standard output");
    let mut line = String::new();
    Number::Int(std::io::stdin().read_line(&mut line).map_or(-1, |count| count as i128))
}
