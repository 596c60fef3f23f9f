//! Native types of Rust as arguments of operations, and as what they come to.

use std::cell::RefCell;
use std::rc::Rc;

use crate::buffer::HostBuffer;
use crate::framework::{Arg, Fault, Framework, Opaque, Value};
use crate::values::{Data, Number};

/// A native type that an operation of the table takes.
///
/// A framework implements it for its tensor, its device and its dtype.
pub trait FromArg<F: Framework>: Sized {
    /// Whether it is a plain number.
    const NUMBER: bool = false;

    /// Return the native value of an argument; `None` for an argument of another kind.
    ///
    /// # Errors
    /// `NotOffered` for what the framework has no native value of.
    fn from_arg(framework: &F, arg: &Arg<F>) -> Result<Option<Self>, Fault>;
}

/// What an expression of the table may come to.
///
/// A framework implements it for its tensor and its device.
pub trait IntoValue<F: Framework> {
    /// Return the value of the step.
    fn into_value(self) -> Value<F>;
}

impl<F: Framework> IntoValue<F> for Value<F> {
    fn into_value(self) -> Self {
        self
    }
}

impl<F: Framework> IntoValue<F> for Opaque {
    fn into_value(self) -> Value<F> {
        Value::Opaque(self)
    }
}

impl<F: Framework> IntoValue<F> for () {
    fn into_value(self) -> Value<F> {
        Value::None
    }
}

impl<F: Framework> IntoValue<F> for Number {
    fn into_value(self) -> Value<F> {
        Value::Number(self)
    }
}

impl<F: Framework> IntoValue<F> for bool {
    fn into_value(self) -> Value<F> {
        Value::Number(Number::Bool(self))
    }
}

impl<F: Framework> IntoValue<F> for Vec<Number> {
    fn into_value(self) -> Value<F> {
        Value::List(self)
    }
}

macro_rules! numbers {
    ($($native:ty: $pattern:pat => $value:expr),*) => {$(
        impl<F: Framework> FromArg<F> for $native {
            const NUMBER: bool = true;
            fn from_arg(_: &F, arg: &Arg<F>) -> Result<Option<Self>, Fault> {
                Ok(match arg {
                    Arg::Value(Value::Number($pattern)) => $value,
                    _ => None,
                })
            }
        }
    )*};
}

numbers! {
    Number: number => Some(*number),
    // A literal with a point alone: Rust converts no other one, so a framework that takes floats doesn't take the rest.
    f64: Number::Float(real) => Some(*real),
    i64: Number::Int(whole) => i64::try_from(*whole).ok(),
    usize: Number::Int(whole) => usize::try_from(*whole).ok(),
    bool: Number::Bool(truth) => Some(*truth)
}

impl<F: Framework> FromArg<F> for Data {
    fn from_arg(_: &F, arg: &Arg<F>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Data(data) = arg { Some(data.clone()) } else { None })
    }
}

impl<F: Framework> FromArg<F> for String {
    fn from_arg(_: &F, arg: &Arg<F>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Text(text) = arg { Some(text.clone()) } else { None })
    }
}

impl<F: Framework> FromArg<F> for Opaque {
    fn from_arg(_: &F, arg: &Arg<F>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Opaque(opaque)) = arg { Some(opaque.clone()) } else { None })
    }
}

impl<F: Framework> FromArg<F> for Rc<RefCell<HostBuffer>> {
    fn from_arg(_: &F, arg: &Arg<F>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Buffer(buffer)) = arg { Some(Self::clone(buffer)) } else { None })
    }
}

impl<F: Framework> FromArg<F> for Vec<usize> {
    fn from_arg(framework: &F, arg: &Arg<F>) -> Result<Option<Self>, Fault> {
        let Arg::List(items) = arg else { return Ok(None) };
        items.iter().map(|item| usize::from_arg(framework, item)).collect()
    }
}
