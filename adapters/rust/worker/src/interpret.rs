//! Run one neutral program through a framework: program -> observation.
//!
//! Each step leaves one fact: its value's metadata, an error, or why it was not asked. Nothing is read
//! that the program does not ask for: looking at metadata never waits, `observe` does.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde_json::{Map, Value as Json, json};

use crate::buffer::HostBuffer;
use crate::framework::{Arg, ErrorFact, Fault, Framework, Place, Roles, Value};
use crate::panics::{self, Panic};
use crate::table::Table;
use crate::timing;
use crate::values::{Data, Number, WHOLE, positions};

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
    framework: F,
    roles: Roles,
    table: Rc<Table<F>>,
    devices: BTreeMap<Place, F::Device>,
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
enum Outcome<F: Framework> {
    Value(Value<F>),
    Fact(Json),
}

/// Why a step has no value; what is wrong with the program is another matter than what is wrong with the step.
enum Stop {
    Fault(Fault),
    Malformed(Malformed),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn malformed<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Malformed(Malformed(why.into())))
}

struct Runner<'a, F: Framework> {
    own: &'a mut Interpreter<F>,
    values: HashMap<String, Value<F>>,
    facts: Map<String, Json>,
    /// How devices that aren't there were written.
    spelled: Map<String, Json>,
    /// Panics of other threads, seen during the step that is running.
    warnings: Vec<Panic>,
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
    fn call<T>(&mut self, call: impl FnOnce(&mut Interpreter<F>) -> Result<T, Fault>) -> Result<T, Fault> {
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

    // --- arguments ------------------------------------------------------------------------------

    fn arguments(&mut self, args: Option<&Json>) -> Result<Vec<Arg<F>>, Stop> {
        args.and_then(Json::as_array).into_iter().flatten().map(|arg| self.argument(arg)).collect()
    }

    /// Turn an argument on the wire into a native one.
    fn argument(&mut self, arg: &Json) -> Result<Arg<F>, Stop> {
        if let Some(place) = place(arg) {
            return Ok(Arg::Value(Value::Device(self.device(place)?)));
        }
        Ok(match arg {
            Json::Array(items) => Arg::List(items.iter().map(|item| self.argument(item)).collect::<Result<_, _>>()?),
            Json::Null => Arg::Value(Value::None),
            Json::Object(object) => {
                if let Some(other) = object.get("ref") {
                    match other.as_str().and_then(|other| self.values.get(other)) {
                        Some(value) => Arg::Value(value.clone()),
                        None => return malformed(format!("{other} has no value")),
                    }
                } else if let Some(Json::String(dtype)) = object.get("dtype") {
                    Arg::DType(dtype.clone())
                } else if let Some(data) = object.get("data") {
                    Arg::Data(Data::parse(data, object.get("imag")).or_else(malformed)?)
                } else {
                    return malformed(format!("no argument: {arg:.200}"));
                }
            }
            Json::String(text) => Arg::Text(text.clone()),
            plain => match Number::parse(plain) {
                Some(number) => Arg::Value(Value::Number(number)),
                None => return malformed(format!("no argument: {arg:.200}")),
            },
        })
    }

    /// Put a role in the place of `device`: the accelerator where there is one, else the host.
    fn resolve(&mut self, mut place: Place) -> Result<Place, Stop> {
        if place.name == "device" {
            place.name = if self.own.roles.contains_key("accelerator") { "accelerator" } else { "host" }.into();
        }
        match place.name.as_str() {
            "absent" | "out-of-range" | "misspelt" => {
                let written = self.own.framework.missing(&place);
                self.spelled.extend(written.map(|text| (format!("{}/{}", place.name, place.spelled), text.into())));
                Ok(place)
            }
            name if self.own.roles.contains_key(name) => Ok(place),
            name => Err(Fault::NotOffered(format!("no {name} device here")).into()),
        }
    }

    /// Return a native device, the same handle each time.
    fn device(&mut self, place: Place) -> Result<F::Device, Stop> {
        let place = self.resolve(place)?;
        if let Some(known) = self.own.devices.get(&place) {
            return Ok(known.clone());
        }
        let device = self.call(|own| own.framework.device(&place))?;
        self.own.devices.insert(place, device.clone());
        Ok(device)
    }

    // --- looking --------------------------------------------------------------------------------

    /// Return facts about a result without waiting for it.
    fn describe(&mut self, value: &Value<F>) -> Result<Json, Fault> {
        Ok(match value {
            Value::None => json!({"kind": "none"}),
            Value::Number(number) => {
                let kind = match number {
                    Number::Bool(_) => "bool",
                    Number::Int(_) => "int",
                    Number::Float(_) => "float",
                    Number::Complex(..) => "complex",
                };
                json!({"kind": "python", "type": kind, "value": number.json()})
            }
            Value::Tensor(tensor) => {
                let caught = panics::catch(|| self.own.framework.describe(tensor));
                self.warnings.extend(caught.elsewhere);
                // Asking may be what brings a late error up.
                let facts = caught.result.map_err(|panic| {
                    if panic.own {
                        Fault::AdapterFailed(format!("a tensor can't be described: {}", panic.sentence()))
                    } else {
                        Fault::Error(panicked::<F>(&panic))
                    }
                })?;
                let role = ["host", "accelerator", "peer"]
                    .into_iter()
                    .find(|role| self.own.roles.get(*role).is_some_and(|r| r.name == facts.device));
                json!({"kind": "tensor", "device": facts.device, "dtype": facts.dtype, "shape": facts.shape, "role": role})
            }
            Value::Device(device) => {
                let device = device.clone();
                json!({"kind": "handle", "text": clean(&self.call(|own| Ok(own.framework.device_name(&device)))?)})
            }
            Value::List(_) => json!({"kind": "handle", "text": "plain numbers"}),
            Value::Buffer(_) => json!({"kind": "handle", "text": "host memory"}),
        })
    }

    /// Read a value, waiting for it; a simulation without values says so.
    fn observe(&mut self, value: &Value<F>) -> Result<Outcome<F>, Stop> {
        let mut facts = self.describe(value)?;
        if let Value::List(list) = value {
            facts["shape"] = json!([list.len()]);
            facts["elements"] = list.iter().take(WHOLE).map(|number| number.json()).collect();
        }
        if let Value::Tensor(tensor) = value {
            match self.call(|own| own.framework.read(tensor)) {
                Err(Fault::NotModelled(why)) => {
                    facts["readable"] = false.into();
                    facts["why"] = why.into();
                }
                other => {
                    let flat = other?;
                    let places = positions(flat.len());
                    facts["elements"] = places.iter().map(|place| flat[*place].json()).collect();
                    if places.len() < flat.len() {
                        facts["at"] = places.into();
                    }
                }
            }
        }
        Ok(Outcome::Fact(facts))
    }

    /// Say whether two values are one object, share storage, or neither.
    fn same(&mut self, left: &Value<F>, right: &Value<F>) -> Result<Outcome<F>, Stop> {
        let (object, storage) = match (left, right) {
            (Value::Tensor(left), Value::Tensor(right)) => self.call(|own| {
                if own.framework.same_object(left, right) {
                    return Ok((true, Some(true)));
                }
                let both = own.framework.storage(left).zip(own.framework.storage(right));
                Ok((false, both.map(|(one, other)| one == other)))
            })?,
            _ => (false, None),
        };
        Ok(Outcome::Fact(json!({"kind": "identity", "object": object, "storage": storage})))
    }

    /// Compare two devices as values.
    fn compare(&mut self, left: &F::Device, right: &F::Device) -> Result<Outcome<F>, Stop> {
        let (found, texts) = self.call(|own| {
            let names = [left, right].map(|device| clean(&own.framework.device_name(device)));
            Ok((own.framework.compare(left, right), names))
        })?;
        let (equal, mirrored, hash) = (found.equal, found.mirrored, found.hash);
        Ok(Outcome::Fact(json!({"kind": "comparison", "equal": equal, "mirrored": mirrored, "hash": hash, "texts": texts})))
    }

    /// Time a chain of operations: returned against synchronised.
    fn time(&mut self, question: &Json) -> Result<Outcome<F>, Stop> {
        let device = match place(&question["device"]) {
            Some(place) => self.device(place)?,
            None => return malformed("a loop is timed on a device"),
        };
        let Some(asked) = timing::Question::parse(question, device) else {
            return malformed(format!("no question of time: {question:.300}"));
        };
        let facts = self.call(|own| match own.framework.untimed() {
            Some(why) => Err(Fault::NotModelled(why)),
            None => timing::time_loop(&own.framework, &own.table, &asked),
        })?;
        Ok(Outcome::Fact(facts))
    }

    // --- the end --------------------------------------------------------------------------------

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

fn panicked<F: Framework>(panic: &Panic) -> ErrorFact {
    ErrorFact { kind: "panic".into(), module: F::MODULE.into(), bases: Vec::new(), text: panic.text.clone() }
}

fn warning(panic: &Panic) -> Json {
    json!({"category": "panic", "text": clean(&format!("thread {} panicked: {}", panic.thread, panic.sentence()))})
}

/// Return the device that an argument is.
fn place(arg: &Json) -> Option<Place> {
    let name = arg.get("device")?.as_str()?.to_owned();
    let spelled = arg.get("spelled").and_then(Json::as_str).unwrap_or("object").to_owned();
    Some(Place { name, spelled })
}

fn refs(step: &Json) -> Vec<&Json> {
    fn walk<'a>(arg: &'a Json, found: &mut Vec<&'a Json>) {
        match arg {
            Json::Array(items) => items.iter().for_each(|item| walk(item, found)),
            Json::Object(object) => found.extend(object.get("ref")),
            _ => {}
        }
    }
    let mut found = Vec::new();
    if let Some(args) = step.get("args") {
        walk(args, &mut found);
    }
    for arg in step.get("kw").and_then(Json::as_object).into_iter().flat_map(Map::values) {
        walk(arg, &mut found);
    }
    found
}

/// Return a text of bounded length.
fn clean(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} […]", &text[..at]),
    }
}
