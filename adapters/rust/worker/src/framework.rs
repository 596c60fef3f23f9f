//! What a framework says of itself, and the values that its operations take and give.
//!
//! A worker is one type that implements [`Framework`]. Its operations stand in a table, made with
//! [`operations!`](crate::operations): the native expression is written once, and is both what runs and
//! the phrase that users are shown. What isn't in the table is not offered.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::buffer::HostBuffer;
use crate::table::Operation;
use crate::values::{Data, Number};

/// Why a step has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An error of the framework's own: that is an answer.
    Error(ErrorFact),
    /// The framework has no such concept; the sentence says which.
    NotOffered(String),
    /// A simulation can't express the question; the sentence says why.
    NotModelled(String),
    /// The worker itself is wrong: nothing is learnt about the framework.
    AdapterFailed(String),
}

/// An error of the framework's own, in the form that every language's errors have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorFact {
    /// The variant of a typed error; `panic` for a panic.
    pub kind: String,
    /// The crate that the type is from, or whose code panicked.
    pub module: String,
    /// What the type belongs to, the nearest first.
    pub bases: Vec<String>,
    /// What it says, without a backtrace.
    pub text: String,
}

/// A value that a step made.
pub enum Value<F: Framework> {
    /// Nothing.
    None,
    /// A plain number.
    Number(Number),
    /// A tensor, or what the framework calls one.
    Tensor(F::Tensor),
    /// A device handle.
    Device(F::Device),
    /// Plain numbers of a tensor, on the host.
    List(Vec<Number>),
    /// Host memory outside the framework.
    Buffer(Rc<RefCell<HostBuffer>>),
    /// A module, or what modules are built from.
    Opaque(Opaque),
}

/// A value of a type that only the framework's own operations know. A clone is another handle for the same value.
#[derive(Clone)]
pub struct Opaque {
    native: Rc<dyn Any>,
    text: String,
}

impl Opaque {
    /// Take a value, and how it prints.
    pub fn new(native: impl Any, text: impl Into<String>) -> Self {
        Self { native: Rc::new(native), text: text.into() }
    }

    /// Return the value, if it is of that type.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.native.downcast_ref()
    }

    /// Return how it prints.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Say whether two handles are for one value.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.native, &other.native)
    }
}

impl<F: Framework> Clone for Value<F> {
    fn clone(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Number(number) => Self::Number(*number),
            Self::Tensor(tensor) => Self::Tensor(tensor.clone()),
            Self::Device(device) => Self::Device(device.clone()),
            Self::List(list) => Self::List(list.clone()),
            Self::Buffer(buffer) => Self::Buffer(Rc::clone(buffer)),
            Self::Opaque(opaque) => Self::Opaque(opaque.clone()),
        }
    }
}

/// An argument of an operation.
pub enum Arg<F: Framework> {
    /// The value of an earlier step; a device named by its role is one too.
    Value(Value<F>),
    /// A dtype's neutral name.
    DType(String),
    /// Numbers to make a tensor of.
    Data(Data),
    /// Text, such as a memory kind.
    Text(String),
    /// A list, such as a shape.
    List(Vec<Arg<F>>),
}

/// A device in a program: a role, or a device that is missing, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// `host`, `accelerator`, `peer`, `alias`; or `absent`, `out-of-range`, `misspelt`.
    pub name: String,
    /// `object`, `string`, `indexed` or `indexless`.
    pub spelled: String,
}

/// One role of a device kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// As the framework prints the device, in its error texts above all.
    pub name: String,
    /// As a user writes it.
    pub expression: String,
    /// `measured` on a real device, or `simulated`.
    pub evidence: String,
    /// How error texts write the device, where that is not its name.
    pub mention: Option<String>,
}

impl Role {
    /// Return a role on a real device.
    pub fn measured(name: impl Into<String>, expression: impl Into<String>) -> Self {
        Self { name: name.into(), expression: expression.into(), evidence: "measured".into(), mention: None }
    }

    /// Return a role on a device that only stands for one.
    pub fn simulated(name: impl Into<String>, expression: impl Into<String>) -> Self {
        Self { evidence: "simulated".into(), ..Self::measured(name, expression) }
    }
}

/// The roles of a device kind, by `host`, `accelerator`, `peer`, `alias`.
pub type Roles = BTreeMap<String, Role>;

/// A device kind: its roles, or a sentence that says why there is none here.
pub type Kind = Result<Roles, String>;

/// Version and build of a framework.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// The version that was compiled in.
    pub version: String,
    /// Facts about the build that may change an answer.
    pub build: BTreeMap<String, String>,
}

/// What a tensor says of itself without waiting for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The device as the framework prints it: a role's `name`, where it is a role's.
    pub device: String,
    /// The neutral name of the dtype.
    pub dtype: String,
    /// The lengths of the axes.
    pub shape: Vec<usize>,
}

/// Two devices compared as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Whether the first says that it equals the second.
    pub equal: bool,
    /// Whether the second says that it equals the first.
    pub mirrored: bool,
    /// Whether they hash alike; `None` where devices can't be hashed.
    pub hash: Option<bool>,
}

/// One framework on one kind of device. A worker keeps one for each kind, for its whole life.
///
/// Any method may panic: that is the framework's error, but in `describe` the worker's when its own source panicked.
pub trait Framework: Sized + 'static {
    /// A tensor. A clone is another handle for the same tensor.
    type Tensor: Clone;
    /// A device handle. A clone is the same handle.
    type Device: Clone;
    /// What the expressions of the table may return with `?`.
    type Error: From<Fault> + Into<Fault>;

    /// The name in selectors (`candle` in `candle:cpu`).
    const NAME: &'static str;
    /// The crate whose panics these are.
    const MODULE: &'static str;
    /// Environment variables that change answers.
    const VARIABLES: &'static [&'static str];

    /// Return version and build.
    fn identity() -> Identity;
    /// Return each device kind by its name, here or not. Never starts a device that isn't asked for where it can be avoided.
    fn kinds() -> Vec<(String, Kind)>;
    /// Return the neutral dtypes that have a native one.
    fn dtypes() -> Vec<&'static str>;
    /// Return what can be asked of a tensor, see [`operations!`](crate::operations).
    fn operations() -> Vec<Operation<Self>>;

    /// Return phrases beside those of the operations: for `observe`, `drop`, `same`, `compare`, `barrier`, dtypes, and so on.
    fn phrases() -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    /// Return the variables behind the environments that a case may ask for, such as `no-accelerator`.
    fn environments() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        Vec::new()
    }

    /// Return environments that mean other variables for each device kind, such as the one that names it as default.
    fn kind_environments(_kind: &str) -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        Vec::new()
    }

    /// Take a device kind and its roles. They may be those of another process, in whose environment the device was to be seen.
    fn open(kind: &str, roles: &Roles) -> Self;

    /// Name a device anew: two names of one device are two handles where the framework makes two.
    ///
    /// # Errors
    /// What the framework says to a device that it refuses, or that it can't be written so.
    fn device(&self, place: &Place) -> Result<Self::Device, Fault>;
    /// Return how a device that isn't there is written (`absent`, `out-of-range`, `misspelt`), for the code that is shown;
    /// `None` for a spelling that there isn't.
    fn missing(&self, _place: &Place) -> Option<String> {
        None
    }
    /// Return a device as the framework prints it.
    fn device_name(&self, device: &Self::Device) -> String;
    /// Compare two devices as values.
    fn compare(&self, left: &Self::Device, right: &Self::Device) -> Comparison;

    /// Return device, dtype and shape without waiting for the value.
    fn describe(&self, tensor: &Self::Tensor) -> Facts;
    /// Say whether the device of a tensor, which is no role's, only stands for one: a value that nobody placed may be anywhere.
    fn simulated(&self, _tensor: &Self::Tensor) -> bool {
        false
    }
    /// Return the elements, row by row. Waits for them.
    ///
    /// # Errors
    /// What the framework says; `NotModelled` where a simulation holds no values.
    fn read(&self, tensor: &Self::Tensor) -> Result<Vec<Number>, Fault>;
    /// Say whether two values are one tensor to the framework itself.
    fn same_object(&self, _left: &Self::Tensor, _right: &Self::Tensor) -> bool {
        false
    }
    /// Return what is equal for two tensors exactly when they share storage; `None` where it can't be known.
    fn storage(&self, _tensor: &Self::Tensor) -> Option<usize> {
        None
    }

    /// Wait for everything that was queued.
    ///
    /// # Errors
    /// A late error.
    fn barrier(&self, _values: &[Self::Tensor]) -> Result<(), Fault> {
        Ok(())
    }
    /// Enter a scoped region (`default-device` with a device, `inference`); it ends when what is returned is dropped.
    ///
    /// # Errors
    /// `NotOffered` where there is no such region.
    fn scope(&self, name: &str, _device: Option<&Self::Device>) -> Result<Box<dyn Any>, Fault> {
        Err(Fault::NotOffered(format!("{} has no {name} scope", Self::NAME)))
    }
    /// Put global state back, so that no program changes the next.
    fn reset(&self) {}
    /// Do what is slow the first time, before a question's time counts.
    fn warm(&self) {}
    /// Return why nothing can be timed on this kind of device.
    fn untimed(&self) -> Option<String> {
        None
    }
    /// Tell a simulation's own failure (`NotModelled`) from the framework's errors.
    fn reinterpret(&self, error: ErrorFact) -> Fault {
        Fault::Error(error)
    }
    /// Say whether the device can't be used in this process any more. A panic on another thread always says so: that thread is gone.
    fn poisoned(&self, _error: &ErrorFact) -> bool {
        false
    }
}
