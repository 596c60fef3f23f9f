//! What moves with a module.

use burn::module::{Module, Param, RunningState};
use burn::tensor::Tensor;

use crate::{FOUR, Pair, four, right};

/// A module that keeps a tensor in every way that there is.
#[derive(Module, Debug)]
struct Keeper {
    parameter: Param<Tensor<1>>,
    buffer: RunningState<Tensor<1>>,
    list: Vec<Tensor<1>>,
    attribute: Tensor<1>,
}

/// Move a clone to the device, and say where each member is then, in both.
pub fn moves(pair: &Pair) {
    let x = || four(&pair.host);
    let before = Keeper { parameter: Param::from_tensor(x()), buffer: RunningState::new(x()), list: vec![x()], attribute: x() };
    let after = before.clone().to_device(&pair.device);
    for (name, of) in [
        ("parameter", (|module| module.parameter.val()) as fn(&Keeper) -> Tensor<1>),
        ("buffer", |module| module.buffer.value()),
        ("list", |module| module.list[0].clone()),
        ("attribute", |module| module.attribute.clone()),
    ] {
        let there = |module| of(module).device() == pair.device;
        let word = if !there(&after) {
            "stays"
        } else if there(&before) {
            "moves-both"
        } else {
            "moves-copy"
        };
        pair.say(&format!("modules/move/{name}"), right(of(&after), &FOUR, word));
    }
}
