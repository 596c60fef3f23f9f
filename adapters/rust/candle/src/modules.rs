//! candle's modules: a layer, and the builder that layers get their weights from.

use std::collections::HashMap;

use candle_core::{DType, Device, Module, Tensor};
use candle_nn::{Linear, VarBuilder, linear_no_bias};
use worker::{Arg, Fault, FromArg, IntoValue, Opaque, Operation, Value, operations};

use crate::Candle;

/// A layer, or a builder.
fn opaque<T: Clone + 'static>(arg: &Arg<Candle>) -> Option<T> {
    if let Arg::Value(Value::Opaque(opaque)) = arg { opaque.get::<T>().cloned() } else { None }
}

impl FromArg<Candle> for Linear {
    fn from_arg(_: &Candle, arg: &Arg<Candle>) -> Result<Option<Self>, Fault> {
        Ok(opaque(arg))
    }
}

impl FromArg<Candle> for VarBuilder<'static> {
    fn from_arg(_: &Candle, arg: &Arg<Candle>) -> Result<Option<Self>, Fault> {
        Ok(opaque(arg))
    }
}

impl IntoValue<Candle> for Linear {
    fn into_value(self) -> Value<Candle> {
        let text = format!("{self:?}");
        Value::Opaque(Opaque::new(self, text))
    }
}

impl IntoValue<Candle> for VarBuilder<'static> {
    fn into_value(self) -> Value<Candle> {
        let text = format!("VarBuilder on {}", crate::name(self.device()));
        Value::Opaque(Opaque::new(self, text))
    }
}

/// Not in the table: a move, and registration. A module is a struct whose fields nobody is told of; who wants it elsewhere builds it again.
pub fn table() -> Vec<Operation<Candle>> {
    operations! { Candle, candle;
        linear(weight: Tensor) => Linear::new(weight, None);
        member(module: Linear, kind: String) as "{0}.weight().clone()" => weight(&module, &kind)?;
        call(module: Linear, x: Tensor) => module.forward(&x)?;
        loader(weight: Tensor, device: Device)
            as "VarBuilder::from_tensors(HashMap::from([(\"weight\".to_string(), {0})]), DType::F32, &{1})"
            => VarBuilder::from_tensors(HashMap::from([("weight".to_string(), weight)]), DType::F32, &device);
        load(loader: VarBuilder<'static>, edge: usize) as "linear_no_bias({1}, {1}, {0}.clone())?" => linear_no_bias(edge, edge, loader)?;
        loader_to(loader: VarBuilder<'static>, device: Device) as "{0}.clone().set_device({1}.clone())" => loader.set_device(device);
    }
}

fn weight(module: &Linear, kind: &str) -> Result<Tensor, Fault> {
    if kind == "weight" { Ok(module.weight().clone()) } else { Err(Fault::NotOffered(format!("candle's Linear keeps no {kind}"))) }
}
