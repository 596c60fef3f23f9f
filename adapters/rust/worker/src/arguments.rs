//! Arguments of steps: from the wire to native ones, devices by their roles among them.

use serde_json::{Map, Value as Json};

use crate::framework::{Arg, Fault, Framework, Place, Value};
use crate::interpret::{Runner, Stop, malformed};
use crate::values::{Data, Number};

impl<F: Framework> Runner<'_, F> {
    pub(crate) fn arguments(&mut self, args: Option<&Json>) -> Result<Vec<Arg<F>>, Stop> {
        args.and_then(Json::as_array).into_iter().flatten().map(|arg| self.argument(arg)).collect()
    }

    /// Turn an argument on the wire into a native one.
    pub(crate) fn argument(&mut self, arg: &Json) -> Result<Arg<F>, Stop> {
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
    pub(crate) fn resolve(&mut self, mut place: Place) -> Result<Place, Stop> {
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
    pub(crate) fn device(&mut self, place: Place) -> Result<F::Device, Stop> {
        let place = self.resolve(place)?;
        if let Some(known) = self.own.devices.get(&place) {
            return Ok(known.clone());
        }
        let device = self.call(|own| own.framework.device(&place))?;
        self.own.devices.insert(place, device.clone());
        Ok(device)
    }
}

/// Return the device that an argument is.
pub(crate) fn place(arg: &Json) -> Option<Place> {
    let name = arg.get("device")?.as_str()?.to_owned();
    let spelled = arg.get("spelled").and_then(Json::as_str).unwrap_or("object").to_owned();
    Some(Place { name, spelled })
}

/// Return the steps that a step refers to.
pub(crate) fn refs(step: &Json) -> Vec<&Json> {
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
