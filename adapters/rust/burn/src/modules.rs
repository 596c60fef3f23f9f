//! burn's modules: a layer, and structs that keep one tensor in each of the ways that there are.
//!
//! Nothing is registered with a module: every field of a struct that derives `Module` belongs to it, whatever it is.

use burn::module::{Module, Param, RunningState};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use worker::{Arg, Fault, FromArg, IntoValue, Opaque, Operation, Value, operations};

use crate::Burn;

/// A module of one field.
#[derive(Module, Debug)]
struct Holder<M: Module> {
    kept: M,
}

/// The modules that are asked.
#[allow(clippy::large_enum_variant, reason = "one program has a handful of them")]
#[derive(Clone, Debug)]
enum Asked {
    Layer(Linear),
    Parameter(Holder<Param<Tensor<2>>>),
    Buffer(Holder<RunningState<Tensor<2>>>),
    List(Holder<Vec<Tensor<2>>>),
    Attribute(Holder<Tensor<2>>),
}

impl Asked {
    fn keep(x: Tensor<2>, kind: &str) -> Result<Self, Fault> {
        Ok(match kind {
            "parameter" => Self::Parameter(Holder { kept: Param::from_tensor(x) }),
            "buffer" => Self::Buffer(Holder { kept: RunningState::new(x) }),
            "list" => Self::List(Holder { kept: vec![x] }),
            "attribute" => Self::Attribute(Holder { kept: x }),
            _ => return Err(Fault::NotOffered(format!("burn's modules keep no {kind}"))),
        })
    }

    fn kept(&self) -> Tensor<2> {
        match self {
            Self::Layer(layer) => layer.weight.val(),
            Self::Parameter(holder) => holder.kept.val(),
            Self::Buffer(holder) => holder.kept.value(),
            Self::List(holder) => holder.kept[0].clone(),
            Self::Attribute(holder) => holder.kept.clone(),
        }
    }

    fn moved(self, device: &Device) -> Self {
        match self {
            Self::Layer(module) => Self::Layer(module.to_device(device)),
            Self::Parameter(module) => Self::Parameter(module.to_device(device)),
            Self::Buffer(module) => Self::Buffer(module.to_device(device)),
            Self::List(module) => Self::List(module.to_device(device)),
            Self::Attribute(module) => Self::Attribute(module.to_device(device)),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Result<Tensor<2>, Fault> {
        match self {
            Self::Layer(layer) => Ok(layer.forward(x)),
            _ => Err(Fault::NotOffered("only a layer computes".into())),
        }
    }
}

impl FromArg<Burn> for Asked {
    fn from_arg(_: &Burn, arg: &Arg<Burn>) -> Result<Option<Self>, Fault> {
        Ok(if let Arg::Value(Value::Opaque(opaque)) = arg { opaque.get::<Self>().cloned() } else { None })
    }
}

impl IntoValue<Burn> for Asked {
    fn into_value(self) -> Value<Burn> {
        Value::Opaque(Opaque::new(self, "a module"))
    }
}

/// Not in the table: a layer without a device, since each is made on one that is named, and loaders, of which none keeps one.
pub fn operations() -> Vec<Operation<Burn>> {
    operations! { Burn, burn;
        linear(weight: Tensor<2>) as "Linear { weight: Param::from_tensor({0}), bias: None }"
            => Asked::Layer(Linear { weight: Param::from_tensor(weight), bias: None });
        holder(x: Tensor<2>, kind: String) => Asked::keep(x, &kind)?;
        member(module: Asked, kind: String) => { let _ = kind; module.kept() };
        call(module: Asked, x: Tensor<2>) as "{0}.forward({1})" => module.forward(x)?;
        move_module(module: Asked, device: Device) as "{0}.to_device(&{1})" => module.moved(&device);
    }
}

/// How each kind of field is written; the struct stands where it is made.
pub fn phrases() -> Vec<(&'static str, &'static str)> {
    vec![
        (
            "holder/parameter",
            "{ #[derive(Module, Debug)] struct Holder { kept: Param<Tensor<2>> } Holder { kept: Param::from_tensor({0}) } }",
        ),
        (
            "holder/buffer",
            "{ #[derive(Module, Debug)] struct Holder { kept: RunningState<Tensor<2>> } Holder { kept: RunningState::new({0}) } }",
        ),
        ("holder/list", "{ #[derive(Module, Debug)] struct Holder { kept: Vec<Tensor<2>> } Holder { kept: vec![{0}] } }"),
        ("holder/attribute", "{ #[derive(Module, Debug)] struct Holder { kept: Tensor<2> } Holder { kept: {0} } }"),
        ("member/weight", "{name 0}.weight.val()"),
        ("member/parameter", "{name 0}.kept.val()"),
        ("member/buffer", "{name 0}.kept.value()"),
        ("member/list", "{name 0}.kept[0].clone()"),
        ("member/attribute", "{name 0}.kept.clone()"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(deprecated, reason = "ndarray is one of the backends that are asked")]
    fn whatever_a_module_keeps_moves_with_it() {
        for kind in ["parameter", "buffer", "list", "attribute"] {
            let module = Asked::keep(Tensor::from_floats([[2.0, 3.0]], &Device::flex()), kind).expect("there is such a field");
            let moved = module.clone().moved(&Device::ndarray());
            assert_eq!(moved.kept().device(), Device::ndarray(), "{kind}");
            let shared = module.kept().device() == Device::ndarray();
            assert_eq!(shared, kind == "buffer", "{kind}: a running state is one for all clones");
        }
        assert!(Asked::keep(Tensor::from_floats([[2.0]], &Device::flex()), "optimizer").is_err());
    }
}
