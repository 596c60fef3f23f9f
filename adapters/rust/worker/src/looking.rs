//! Looking at values: what a result says of itself, reading it, and comparing two.

use serde_json::{Value as Json, json};

use crate::arguments::place;
use crate::framework::{Fault, Framework, Value};
use crate::interpret::{Outcome, Runner, Stop, clean, malformed, panicked};
use crate::panics;
use crate::timing;
use crate::values::{Number, WHOLE, positions};

impl<F: Framework> Runner<'_, F> {
    /// Return facts about a result without waiting for it.
    pub(crate) fn describe(&mut self, value: &Value<F>) -> Result<Json, Fault> {
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
                let own = &*self.own;
                let caught = panics::catch(|| {
                    let facts = own.framework.describe(tensor);
                    let simulated = own.roles.values().all(|role| role.name != facts.device) && own.framework.simulated(tensor);
                    (facts, simulated)
                });
                self.warnings.extend(caught.elsewhere);
                // Asking may be what brings a late error up.
                let (facts, simulated) = caught.result.map_err(|panic| {
                    if panic.own {
                        Fault::AdapterFailed(format!("a tensor can't be described: {}", panic.sentence()))
                    } else {
                        Fault::Error(panicked::<F>(&panic))
                    }
                })?;
                let role = ["host", "accelerator", "peer"]
                    .into_iter()
                    .find(|role| self.own.roles.get(*role).is_some_and(|r| r.name == facts.device));
                let mut json = json!({"kind": "tensor", "device": facts.device, "dtype": facts.dtype, "shape": facts.shape, "role": role});
                if simulated {
                    json["evidence"] = "simulated".into();
                }
                json
            }
            Value::Device(device) => {
                let device = device.clone();
                json!({"kind": "handle", "text": clean(&self.call(|own| Ok(own.framework.device_name(&device)))?)})
            }
            Value::List(_) => json!({"kind": "handle", "text": "plain numbers"}),
            Value::Buffer(_) => json!({"kind": "handle", "text": "host memory"}),
            Value::Opaque(opaque) => json!({"kind": "handle", "text": clean(opaque.text())}),
        })
    }

    /// Read a value, waiting for it; a simulation without values says so.
    pub(crate) fn observe(&mut self, value: &Value<F>) -> Result<Outcome<F>, Stop> {
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
    pub(crate) fn same(&mut self, left: &Value<F>, right: &Value<F>) -> Result<Outcome<F>, Stop> {
        let (object, storage) = match (left, right) {
            (Value::Tensor(left), Value::Tensor(right)) => self.call(|own| {
                if own.framework.same_object(left, right) {
                    return Ok((true, Some(true)));
                }
                let both = own.framework.storage(left).zip(own.framework.storage(right));
                Ok((false, both.map(|(one, other)| one == other)))
            })?,
            (Value::Opaque(left), Value::Opaque(right)) => (left.is(right), None),
            _ => (false, None),
        };
        Ok(Outcome::Fact(json!({"kind": "identity", "object": object, "storage": storage})))
    }

    /// Compare two devices as values.
    pub(crate) fn compare(&mut self, left: &F::Device, right: &F::Device) -> Result<Outcome<F>, Stop> {
        let (found, texts) = self.call(|own| {
            let names = [left, right].map(|device| clean(&own.framework.device_name(device)));
            Ok((own.framework.compare(left, right), names))
        })?;
        let (equal, mirrored, hash) = (found.equal, found.mirrored, found.hash);
        Ok(Outcome::Fact(json!({"kind": "comparison", "equal": equal, "mirrored": mirrored, "hash": hash, "texts": texts})))
    }

    /// Time a chain of operations: returned against synchronised.
    pub(crate) fn time(&mut self, question: &Json) -> Result<Outcome<F>, Stop> {
        let device = match place(&question["device"]) {
            Some(place) => self.device(place)?,
            None => return malformed("a loop is timed on a device"),
        };
        let source = match question.get("source").map(place) {
            Some(Some(place)) => Some(self.device(place)?),
            Some(None) => return malformed("a value is moved from a device"),
            None => None,
        };
        let Some(asked) = timing::Question::parse(question, device, source) else {
            return malformed(format!("no question of time: {question:.300}"));
        };
        let facts = self.call(|own| match own.framework.untimed() {
            Some(why) => Err(Fault::NotModelled(why)),
            None => timing::time_loop(&own.framework, &own.table, &asked),
        })?;
        Ok(Outcome::Fact(facts))
    }
}
