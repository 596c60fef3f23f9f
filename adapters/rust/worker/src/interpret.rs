//! Run one neutral program through a framework: program -> observation.
//!
//! Each step leaves one fact: its value's metadata, an error, or why it was not asked. Nothing is read
//! that the program does not ask for: looking at metadata never waits, `observe` does.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde_json::{Map, Value as Json, json};

use crate::arguments::{place, refs};
use crate::buffer::HostBuffer;
use crate::framework::{Arg, ErrorFact, Fault, Framework, Place, Roles, Value};
use crate::panics::{self, Panic};
use crate::table::Table;

/// So many letters of a text are kept.
const TEXT: usize = 2000;
/// Facts that end a program.
const STOP: [&str; 3] = ["not_offered", "not_modelled", "adapter_failed"];
/// A step with one of these has no value, and what needs it is skipped.
const WITHOUT_VALUE: [&str; 5] = ["error", "skipped", "not_offered", "not_modelled", "adapter_failed"];

/// A program that isn't made as the protocol says; the sentence says where.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

type Fact = Map<String, Json>;

/// A framework on one kind of device, with what it keeps from one program to the next.
pub struct Interpreter<F: Framework> {
    pub(crate) framework: F,
    pub(crate) roles: Roles,
    pub(crate) table: Rc<Table<F>>,
    pub(crate) devices: BTreeMap<Place, F::Device>,
}

impl<F: Framework> Interpreter<F> {
    /// Take a device kind and its roles.
    pub fn new(table: Rc<Table<F>>, kind: &str, roles: Roles) -> Self {
        Self { framework: F::open(kind, &roles), roles, table, devices: BTreeMap::new() }
    }

    /// Return the framework.
    pub fn framework(&self) -> &F {
        &self.framework
    }

    /// Return the observation of a program.
    ///
    /// # Errors
    /// `Malformed`, when it is no program. Never for what the framework does.
    pub fn run(&mut self, program: &Json) -> Result<Json, Malformed> {
        let mut runner = Runner {
            own: self,
            values: HashMap::new(),
            facts: Map::new(),
            spelled: Map::new(),
            warnings: Vec::new(),
            poisoned: false,
            ended: false,
        };
        let steps = program.get("steps").and_then(Json::as_array).ok_or_else(|| Malformed("a program without steps".into()))?;
        let outcome = runner.steps(steps);
        let drain = runner.close();
        let (facts, spelled, poisoned) = (runner.facts, runner.spelled, runner.poisoned);
        outcome?;
        let mut observation = Map::new();
        observation.insert("steps".into(), Json::Object(facts));
        if let Some(drain) = drain {
            observation.insert("drain".into(), Json::Object(drain));
        }
        if !spelled.is_empty() {
            observation.insert("spelled".into(), Json::Object(spelled));
        }
        if poisoned {
            observation.insert("poisoned".into(), true.into());
        }
        Ok(Json::Object(observation))
    }
}

/// What a step came to: a value that later steps can use, or facts alone.
pub(crate) enum Outcome<F: Framework> {
    Value(Value<F>),
    Fact(Json),
}

/// Why a step has no value; what is wrong with the program is another matter than what is wrong with the step.
pub(crate) enum Stop {
    Fault(Fault),
    Malformed(Malformed),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Say that a program is none.
pub(crate) fn malformed<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Malformed(Malformed(why.into())))
}

/// A program that is running.
pub(crate) struct Runner<'a, F: Framework> {
    pub(crate) own: &'a mut Interpreter<F>,
    pub(crate) values: HashMap<String, Value<F>>,
    facts: Map<String, Json>,
    /// How devices that aren't there were written.
    pub(crate) spelled: Map<String, Json>,
    /// Panics of other threads, seen during the step that is running.
    pub(crate) warnings: Vec<Panic>,
    poisoned: bool,
    ended: bool,
}

impl<F: Framework> Runner<'_, F> {
    /// Run steps in order, until one of them ends the program.
    fn steps(&mut self, steps: &[Json]) -> Result<(), Malformed> {
        for step in steps {
            let id = step.get("id").and_then(Json::as_str).ok_or_else(|| Malformed(format!("a step without an id: {step:.200}")))?;
            let Some(fact) = self.step(step, id)? else { continue };
            let stops = STOP.iter().any(|key| fact.contains_key(*key));
            let ends = stops || (fact.contains_key("error") && step.get("attempt") != Some(&Json::Bool(true)));
            self.facts.insert(id.into(), Json::Object(fact));
            if (ends && step.get("when").is_none()) || self.ended {
                self.ended = true; // of the scopes around it too
                break;
            }
        }
        Ok(())
    }

    /// Run one step and return its fact; `None` when its condition doesn't hold.
    fn step(&mut self, step: &Json, id: &str) -> Result<Option<Fact>, Malformed> {
        if step.get("op").is_some() == step.get("scope").is_some() {
            return Err(Malformed(format!("step {id} has neither or both of op and scope")));
        }
        if let Some(when) = step.get("when").and_then(Json::as_array)
            && !when.iter().any(|other| self.has(other, &["error"]))
        {
            return Ok(None);
        }
        if let Some(missing) = refs(step).into_iter().find(|other| self.has(other, &WITHOUT_VALUE)) {
            return Ok(Some(Map::from_iter([("skipped".into(), missing.clone())])));
        }
        let outer = std::mem::take(&mut self.warnings);
        let outcome = if step.get("scope").is_some() { self.scope(step) } else { self.operation(step, id) };
        let result = match outcome {
            Ok(Outcome::Value(value)) => self.describe(&value).inspect(|_| {
                self.values.insert(id.into(), value.clone());
            }),
            Ok(Outcome::Fact(fact)) => Ok(fact),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Malformed(why)) => return Err(why),
        };
        let mut fact = match result {
            Ok(value) => Map::from_iter([("value".into(), value)]),
            Err(fault) => self.failure(fault),
        };
        let seen = std::mem::replace(&mut self.warnings, outer);
        if !seen.is_empty() {
            self.poisoned = true;
            fact.insert("warnings".into(), seen.iter().take(5).map(warning).collect());
        }
        Ok(Some(fact))
    }

    fn has(&self, id: &Json, keys: &[&str]) -> bool {
        let fact = id.as_str().and_then(|id| self.facts.get(id));
        fact.is_some_and(|fact| keys.iter().any(|key| fact.get(key).is_some()))
    }

    /// Return the fact that a fault is.
    fn failure(&mut self, fault: Fault) -> Fact {
        let fault = match fault {
            Fault::Error(error) => {
                self.poisoned = self.poisoned || self.own.framework.poisoned(&error);
                self.own.framework.reinterpret(error)
            }
            other => other,
        };
        let (key, value) = match fault {
            Fault::Error(ErrorFact { kind, module, bases, text }) => {
                ("error", json!({"type": kind, "module": module, "bases": bases, "text": clean(&text)}))
            }
            Fault::NotOffered(why) => ("not_offered", clean(&why).into()),
            Fault::NotModelled(why) => ("not_modelled", clean(&why).into()),
            Fault::AdapterFailed(why) => ("adapter_failed", clean(&why).into()),
        };
        Map::from_iter([(key.into(), value)])
    }

    /// Call the framework; its panic is an error, and panics of other threads belong to this step.
    pub(crate) fn call<T>(&mut self, call: impl FnOnce(&mut Interpreter<F>) -> Result<T, Fault>) -> Result<T, Fault> {
        let own = &mut *self.own;
        let caught = panics::catch(|| call(own));
        self.warnings.extend(caught.elsewhere);
        caught.result.unwrap_or_else(|panic| Err(Fault::Error(panicked::<F>(&panic))))
    }

    fn scope(&mut self, step: &Json) -> Result<Outcome<F>, Stop> {
        let Some(body) = step.get("body").and_then(Json::as_array) else {
            return malformed(format!("a scope without a body: {step:.200}"));
        };
        let name = step["scope"].as_str().unwrap_or_default();
        let device = match self.arguments(step.get("args"))?.into_iter().next() {
            None => None,
            Some(Arg::Value(Value::Device(device))) => Some(device),
            Some(_) => return malformed(format!("the scope {name} takes a device or nothing")),
        };
        let inside = self.call(|own| own.framework.scope(name, device.as_ref()))?;
        let outcome = self.steps(body);
        self.call(|_| {
            drop(inside);
            Ok(())
        })?;
        outcome.map_err(Stop::Malformed)?;
        for (key, why) in body.iter().filter_map(|inner| self.facts.get(inner["id"].as_str()?)?.as_object()).flatten() {
            match (key.as_str(), why.as_str().unwrap_or_default().to_owned()) {
                ("not_offered", why) => return Err(Fault::NotOffered(why).into()),
                ("not_modelled", why) => return Err(Fault::NotModelled(why).into()),
                ("adapter_failed", why) => return Err(Fault::AdapterFailed(why).into()),
                _ => {}
            }
        }
        Ok(Outcome::Fact(json!({"kind": "none"})))
    }

    /// Run one operation: the interpreter's own, or the framework's of that name.
    fn operation(&mut self, step: &Json, id: &str) -> Result<Outcome<F>, Stop> {
        let name = step["op"].as_str().unwrap_or_default();
        let none = || Ok(Outcome::Fact(json!({"kind": "none"})));
        match name {
            "drop" => {
                let Some(value) = step["args"][0]["ref"].as_str().and_then(|id| self.values.remove(id)) else {
                    return malformed(format!("{id} drops what isn't there"));
                };
                self.call(|_| {
                    drop(value);
                    Ok(())
                })?;
                return none();
            }
            "name" => {
                let Some(place) = place(&step["args"][0]) else { return malformed(format!("{id} names no device")) };
                let place = self.resolve(place)?;
                return Ok(Outcome::Value(Value::Device(self.call(|own| own.framework.device(&place))?)));
            }
            "time" => {
                let Some(question) = step.get("kw") else { return malformed(format!("{id} times nothing")) };
                return self.time(question);
            }
            "observe" | "barrier" | "same" | "compare" | "buffer" | "write_buffer" => {}
            _ => self.own.table.require(name)?,
        }
        let mut args = self.arguments(step.get("args"))?;
        if let Some(Json::Object(named)) = step.get("kw") {
            let parameters = if name == "buffer" { &["values", "alignment", "dtype"][..] } else { self.own.table.parameters(name) };
            for parameter in parameters.iter().skip(args.len()) {
                args.extend(named.get(*parameter).map(|arg| self.argument(arg)).transpose()?);
            }
        }
        match (name, args.as_slice()) {
            ("observe", [Arg::Value(value)]) => self.observe(value),
            ("barrier", []) => {
                let tensors = self.tensors();
                self.call(|own| own.framework.barrier(&tensors))?;
                none()
            }
            ("same", [Arg::Value(left), Arg::Value(right)]) => self.same(left, right),
            ("compare", [Arg::Value(Value::Device(left)), Arg::Value(Value::Device(right))]) => self.compare(left, right),
            ("buffer", [Arg::Data(data), Arg::Text(alignment), rest @ ..]) => {
                let dtype = if let [Arg::Text(dtype)] = rest { dtype } else { "float32" };
                let buffer = HostBuffer::new(&data.flat, alignment == "aligned", dtype)
                    .ok_or_else(|| Fault::NotOffered(format!("Rust has no plain numbers of {dtype}")))?;
                Ok(Outcome::Value(Value::Buffer(Rc::new(RefCell::new(buffer)))))
            }
            ("write_buffer", [Arg::Value(Value::Buffer(buffer)), Arg::Value(Value::Number(number))]) => {
                buffer.borrow_mut().write(*number);
                none()
            }
            ("observe" | "barrier" | "same" | "compare" | "buffer" | "write_buffer", _) => {
                malformed(format!("{id} gives {name} what it doesn't take"))
            }
            _ => Ok(Outcome::Value(self.call(|own| own.table.call(&own.framework, name, &args))?)),
        }
    }

    fn tensors(&self) -> Vec<F::Tensor> {
        self.values.values().filter_map(|value| if let Value::Tensor(tensor) = value { Some(tensor.clone()) } else { None }).collect()
    }

    /// Wait for everything that was queued, forget it, put global state back; return what surfaced only now.
    fn close(&mut self) -> Option<Fact> {
        let tensors = self.tensors();
        let waited = self.call(|own| own.framework.barrier(&tensors));
        let mut drain = waited.err().map(|fault| self.failure(fault));
        let values = std::mem::take(&mut self.values);
        let freed = self.call(|own| {
            drop((tensors, values));
            own.framework.reset();
            Ok(())
        });
        if let (Err(fault), None) = (freed, &drain) {
            drain = Some(self.failure(fault));
        }
        if let Some(late) = self.warnings.first() {
            // A thread that is gone answers nothing more, whoever asks.
            self.poisoned = true;
            let error = Fault::Error(panicked::<F>(late));
            match &mut drain {
                Some(fact) => {
                    fact.insert("warnings".into(), self.warnings.iter().take(5).map(warning).collect());
                }
                None => drain = Some(self.failure(error)),
            }
        }
        drain
    }
}

/// Return the error that a panic is.
pub(crate) fn panicked<F: Framework>(panic: &Panic) -> ErrorFact {
    ErrorFact { kind: "panic".into(), module: F::MODULE.into(), bases: Vec::new(), text: panic.text.clone() }
}

fn warning(panic: &Panic) -> Json {
    json!({"category": "panic", "text": clean(&format!("thread {} panicked: {}", panic.thread, panic.sentence()))})
}

/// Return a text of bounded length.
pub(crate) fn clean(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} […]", &text[..at]),
    }
}
