//! The clock of a timed loop: returned against synchronised.
//!
//! The ladder, the fields and their meaning are those of `adapters/timing.py`, so that times of workers in
//! two languages can be held against one another. Raw times are all that is returned.

use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::framework::{Arg, Fault, Framework, Value};
use crate::table::Table;
use crate::values::Number;

/// Edge lengths of the square operands.
const LADDER: [u32; 17] = [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384];
/// The largest edge for sums, which need memory rather than time: 256 MiB for each value in flight.
const LARGEST_SUM: u32 = 8192;
/// The largest edge for moves: all that arrive are kept.
const LARGEST_MOVE: u32 = 4096;
/// Seconds of synchronised work that a loop should at least hold.
const WANTED: f64 = 0.05;
/// How often one call is timed: the shortest time is its own, the others are those of a busy machine.
const SAMPLES: usize = 5;
/// Times `WANTED`: on a machine so busy that a loop takes that long, a larger one would take minutes.
const LONG: f64 = 10.0;
/// Calls of a loop on a machine where even a small loop takes so long.
const SHORT: u32 = 5;
/// How often a set of rounds is taken again when they disagree, because something else used the machine.
const TRIES: u32 = 3;

/// The operation that is a move, and the memory kind that every value has at first.
const MOVE: &str = "to_async";
const PLAIN: &str = "device";

/// What is to be timed.
pub struct Question<F: Framework> {
    op: String,
    device: F::Device,
    /// Where moves come from; `None` for operations on the device itself.
    source: Option<F::Device>,
    memory: String,
    dtype: String,
    chain: u32,
    rounds: usize,
    end: String,
    at_most: f64,
    at_least: f64,
    weight: f64,
}

impl<F: Framework> Question<F> {
    /// Read a question off the wire; `None` when something is missing.
    pub fn parse(json: &Json, device: F::Device, source: Option<F::Device>) -> Option<Self> {
        let text = |key: &str| json.get(key)?.as_str().map(str::to_owned);
        let number = |key: &str| json.get(key)?.as_f64();
        let count = |key: &str| json.get(key)?.as_u64().filter(|count| *count <= 1000).and_then(|count| u32::try_from(count).ok());
        let op = text("op")?;
        Some(Self {
            source: if op == MOVE { Some(source?) } else { None },
            memory: text("memory").unwrap_or_else(|| PLAIN.into()),
            op,
            device,
            dtype: json.get("dtype")?.get("dtype")?.as_str()?.to_owned(),
            chain: count("chain")?,
            rounds: count("rounds")? as usize,
            end: text("end")?,
            at_most: number("at_most")?,
            at_least: number("at_least")?,
            weight: number("weight")?,
        })
    }
}

/// Time loops of chained calls of a binary operation, or of moves of one value, and return the raw times in seconds. With no rounds only
/// single calls are timed.
///
/// # Errors
/// What the framework says to the loop, or that it lacks an operation.
pub fn time_loop<F: Framework>(framework: &F, table: &Table<F>, asked: &Question<F>) -> Result<Json, Fault> {
    for name in [asked.op.as_str(), "full", "corner", "item"] {
        table.require(name)?;
    }
    if asked.memory != PLAIN {
        table.require("to_memory")?;
    }
    let mut size = LADDER[0];
    let (mut idle, mut calls) = (0.0, Vec::new());
    let (mut work, mut samples, mut current);
    loop {
        current = Loop::new(framework, table, asked, size)?;
        samples = current.calls_alone()?;
        work = f64::from(asked.chain) * least(&samples);
        if calls.is_empty() {
            (idle, calls) = (work, samples.clone());
        }
        if asked.rounds == 0 {
            return Ok(json!({"kind": "times", "op": asked.op, "size": size, "chain": 1, "calls": calls, "value": current.value()?}));
        }
        let long = f64::from(asked.chain) * greatest(&samples[1..]) >= LONG * WANTED;
        if work >= asked.weight * idle && (work >= WANTED || long) {
            break;
        }
        match following(&asked.op, size, work) {
            Some(next) => size = next,
            None => break,
        }
    }
    let mut first = current.round()?;
    if first.synchronised >= 2.0 * LONG * WANTED {
        current.chain = asked.chain.min(SHORT);
        first = current.round()?;
    }
    let (later, tries) = agreeing(&mut current, asked)?;
    let rounds: Vec<Json> = std::iter::once(&first).chain(&later).map(Round::json).collect();
    Ok(json!({
        "kind": "times", "op": asked.op, "size": size, "chain": current.chain, "end": asked.end, "rounds": rounds, "tries": tries,
        "work": work, "idle": idle, "calls": calls, "cold": samples[0], "value": current.value()?,
    }))
}

/// Return the next size to try; `None` at the ladder's end. From a small size it aims low first.
fn following(op: &str, size: u32, work: f64) -> Option<u32> {
    let (largest, power) = match op {
        "matmul" => (LADDER[LADDER.len() - 1], 3),
        "add" => (LARGEST_SUM, 2),
        MOVE => (LARGEST_MOVE, 2),
        _ => (LADDER[LADDER.len() - 1], 2),
    };
    let aim = if work >= WANTED / 4.0 { WANTED } else { WANTED / 4.0 };
    let larger = || LADDER.into_iter().filter(|next| (size + 1..=largest).contains(next));
    larger().find(|next| work * (f64::from(*next) / f64::from(size)).powi(power) >= aim).or_else(|| larger().next_back())
}

/// Return a set of rounds that agree, and how many sets it took; the last set where none agrees.
fn agreeing<F: Framework>(current: &mut Loop<'_, F>, asked: &Question<F>) -> Result<(Vec<Round>, u32), Fault> {
    let mut tries = 0;
    loop {
        tries += 1;
        let later = (0..asked.rounds).map(|_| current.round()).collect::<Result<Vec<_>, _>>()?;
        let agree = |part: fn(&Round) -> Option<f64>| {
            let parts: Vec<f64> = later.iter().filter_map(|round| Some(round.part(part(round)?))).collect();
            parts.is_empty() || greatest(&parts) <= asked.at_most || least(&parts) >= asked.at_least
        };
        if tries == TRIES || (agree(|round| Some(round.returned)) && agree(|round| round.read)) {
            return Ok((later, tries));
        }
    }
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

#[derive(Clone, Debug)]
struct Round {
    returned: f64,
    read: Option<f64>,
    synchronised: f64,
}

impl Round {
    fn part(&self, time: f64) -> f64 {
        if self.synchronised > 0.0 { time / self.synchronised } else { 1.0 }
    }

    fn json(&self) -> Json {
        let mut json = json!({"returned": self.returned, "synchronised": self.synchronised});
        if let Some(read) = self.read {
            json["read"] = read.into();
        }
        json
    }
}

/// A chain of calls on operands of one size, or as many moves of one value.
struct Loop<'a, F: Framework> {
    framework: &'a F,
    table: &'a Table<F>,
    op: &'a str,
    end: &'a str,
    chain: u32,
    left: Value<F>,
    start: Value<F>,
    other: Value<F>,
    result: Value<F>,
    /// Where the value is moved to.
    destination: Option<&'a F::Device>,
    /// What came of the last moves: none hangs on an earlier one, so that all are kept and waited for.
    arrived: Vec<Value<F>>,
}

impl<'a, F: Framework> Loop<'a, F> {
    fn new(framework: &'a F, table: &'a Table<F>, asked: &'a Question<F>, size: u32) -> Result<Self, Fault> {
        let destination = asked.source.as_ref().map(|_| &asked.device);
        let place = asked.source.as_ref().unwrap_or(&asked.device);
        let full = |value: f64| {
            let edge = || Arg::Value(Value::Number(Number::Int(size.into())));
            let (value, device) = (Arg::Value(Value::Number(Number::Float(value))), Arg::Value(Value::Device(place.clone())));
            table.call(framework, "full", &[Arg::List(vec![edge(), edge()]), value, Arg::DType(asked.dtype.clone()), device])
        };
        // Each call changes every element: a product doubles it, a sum adds a half.
        let mut left = full(if asked.op == "matmul" { 2.0 / f64::from(size) } else { 0.5 })?;
        if asked.memory != PLAIN {
            left = table.call(framework, "to_memory", &[Arg::Value(left), Arg::Text(asked.memory.clone())])?;
        }
        let start = if destination.is_some() { left.clone() } else { full(3.0)? };
        let other = table.call(framework, "corner", &[Arg::Value(left.clone())])?;
        let (op, end, chain, result, arrived) = (asked.op.as_str(), asked.end.as_str(), asked.chain, start.clone(), Vec::new());
        let made = Self { framework, table, op, end, chain, left, start, other, result, destination, arrived };
        made.wait([&made.left, &made.start, &made.other])?;
        Ok(made)
    }

    fn wait<'v>(&'v self, values: impl IntoIterator<Item = &'v Value<F>>) -> Result<(), Fault> {
        let tensors: Vec<F::Tensor> =
            values.into_iter().filter_map(|v| if let Value::Tensor(tensor) = v { Some(tensor.clone()) } else { None }).collect();
        self.framework.barrier(&tensors)
    }

    fn ask(&self, op: &str, args: &[&Value<F>]) -> Result<Value<F>, Fault> {
        let args: Vec<Arg<F>> = args.iter().map(|value| Arg::Value((*value).clone())).collect();
        self.table.call(self.framework, op, &args)
    }

    /// Make one call: a move, or an operation that takes the last call's output.
    fn step(&mut self, value: &Value<F>) -> Result<Value<F>, Fault> {
        let Some(device) = self.destination else { return self.ask(self.op, &[&self.left, value]) };
        let moved = self.ask(self.op, &[&self.left, &Value::Device(device.clone())])?;
        self.arrived.push(moved.clone());
        Ok(moved)
    }

    /// Run the loop once, from the start, and return its times.
    fn round(&mut self) -> Result<Round, Fault> {
        let mut value = self.start.clone();
        self.arrived.clear();
        let started = Instant::now();
        for _ in 0..self.chain {
            value = self.step(&value)?;
        }
        let returned = started.elapsed().as_secs_f64();
        let mut read = None;
        if self.end != "barrier" {
            if self.end == "read-other" {
                self.ask("item", &[&self.other])?;
            } else {
                self.ask("item", &[&self.ask("corner", &[&value])?])?;
            }
            read = Some(started.elapsed().as_secs_f64());
        }
        self.wait(self.arrived.iter().chain([&value]))?;
        let synchronised = started.elapsed().as_secs_f64();
        self.result = value;
        Ok(Round { returned, read, synchronised })
    }

    /// Return what single calls take that are waited for.
    fn calls_alone(&mut self) -> Result<Vec<f64>, Fault> {
        let mut one = || {
            self.arrived.clear();
            let start = self.start.clone();
            let started = Instant::now();
            self.result = self.step(&start)?;
            self.wait([&self.result])?;
            Ok(started.elapsed().as_secs_f64())
        };
        (0..SAMPLES).map(|_| one()).collect()
    }

    /// Return an element of the last round's result: whether anything was computed at all.
    fn value(&self) -> Result<f64, Fault> {
        match self.ask("item", &[&self.ask("corner", &[&self.result])?])? {
            Value::Number(number) => Ok(number.float()),
            _ => Err(Fault::AdapterFailed("item gives no number".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_size_aims_low_first_and_ends_with_the_ladder() {
        assert_eq!(following("matmul", 64, 0.001), Some(192)); // 27 times the work: a quarter of what is wanted
        assert_eq!(following("matmul", 192, 0.02), Some(384));
        assert_eq!(following("add", 8192, 1e-6), None);
        assert_eq!(following("add", 6144, 1e-9), Some(8192)); // not enough, and the last one there is
        assert_eq!(following("to_async", 4096, 1e-6), None);
    }
}
