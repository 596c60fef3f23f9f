//! candle: the host, CUDA and Metal, one handle for each time that a device is made.

mod dtypes;
mod errors;
mod modules;
mod operations;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitCode;

use candle_core::{Device, DeviceLocation, Tensor};
use worker::{Comparison, ErrorFact, Facts, Fault, Framework, Identity, Kind, Number, Operation, Place, Role, Roles, catch, locked};

use crate::errors::Refused;

/// Kinds of accelerators, and whether this program was built with them.
const BUILT: [(&str, bool); 2] = [("cuda", cfg!(feature = "cuda")), ("metal", cfg!(feature = "metal"))];
/// CUDA errors after which nothing more can be asked of a device in the same process.
const LOST: [&str; 10] = [
    "ASSERT",
    "ILLEGAL_ADDRESS",
    "ILLEGAL_INSTRUCTION",
    "INVALID_ADDRESS_SPACE",
    "INVALID_PC",
    "MISALIGNED_ADDRESS",
    "LAUNCH_FAILED",
    "LAUNCH_TIMEOUT",
    "HARDWARE_STACK_ERROR",
    "ECC_UNCORRECTABLE",
];

type Environment = (&'static str, Vec<(&'static str, &'static str)>);

/// Return the environments that show some of the GPUs; none where somebody has chosen already, since GPUs may be other people's.
fn shown(kind: &str, chosen: bool) -> Vec<Environment> {
    let shown = |name, devices| (name, vec![("CUDA_VISIBLE_DEVICES", devices)]);
    if kind != "cuda" || chosen { Vec::new() } else { vec![shown("one-accelerator", "0"), shown("reversed-accelerators", "1,0")] }
}

/// candle on one kind of device.
pub struct Candle {
    kind: String,
    /// Every accelerator that was made, to be waited for.
    made: RefCell<Vec<Device>>,
}

impl Framework for Candle {
    type Tensor = Tensor;
    type Device = Device;
    type Error = Refused;

    const NAME: &'static str = "candle";
    const MODULE: &'static str = "candle_core";
    const VARIABLES: &'static [&'static str] =
        &["CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "RAYON_NUM_THREADS", "CANDLE_NUM_THREADS", "CANDLE_GRAD_DO_NOT_DETACH"];

    fn identity() -> Identity {
        let chosen: Vec<&str> = BUILT.into_iter().filter_map(|(name, on)| on.then_some(name)).collect();
        let features = if chosen.is_empty() { "none".into() } else { chosen.join(", ") };
        Identity { version: locked(include_str!("../Cargo.lock"), "candle-core"), build: BTreeMap::from([("features".into(), features)]) }
    }

    fn kinds() -> Vec<(String, Kind)> {
        vec![("cpu".into(), Ok(Roles::from([host()]))), ("cuda".into(), accelerators("cuda")), ("metal".into(), accelerators("metal"))]
    }

    fn dtypes() -> Vec<&'static str> {
        dtypes::NAMES.iter().map(|(name, _)| *name).collect()
    }

    fn operations() -> Vec<Operation<Self>> {
        let mut table = operations::table();
        table.extend(modules::table());
        table
    }

    fn phrases() -> Vec<(&'static str, &'static str)> {
        operations::phrases()
    }

    fn environments() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        // Nothing hides a Metal device from a process.
        if cfg!(feature = "metal") { Vec::new() } else { vec![("no-accelerator", vec![("CUDA_VISIBLE_DEVICES", "")])] }
    }

    fn kind_environments(kind: &str) -> Vec<Environment> {
        shown(kind, std::env::var_os("CUDA_VISIBLE_DEVICES").is_some())
    }

    fn open(kind: &str, _roles: &Roles) -> Self {
        Self { kind: kind.into(), made: RefCell::default() }
    }

    fn device(&self, place: &Place) -> Result<Device, Fault> {
        if place.spelled != "object" {
            return Err(Fault::NotOffered(format!("candle has no {} spelling of a device: it is a value and never a text", place.spelled)));
        }
        if place.name == "host" {
            return Ok(Device::Cpu);
        }
        let (kind, ordinal) = self.written(place)?;
        let device = new(kind, ordinal).map_err(Refused::from)?;
        self.made.borrow_mut().push(device.clone());
        Ok(device)
    }

    fn missing(&self, place: &Place) -> Option<String> {
        let written = self.written(place).ok().filter(|_| place.spelled == "object");
        written.map(|(kind, ordinal)| expression(kind, ordinal))
    }

    fn device_name(&self, device: &Device) -> String {
        name(device)
    }

    /// Devices are neither `Eq` nor `Hash`; programs compare them with `same_device` and keep them by their location.
    fn compare(&self, left: &Device, right: &Device) -> Comparison {
        Comparison { equal: left.same_device(right), mirrored: right.same_device(left), hash: None }
    }

    fn describe(&self, tensor: &Tensor) -> Facts {
        Facts { device: name(tensor.device()), dtype: dtypes::name(tensor.dtype()).into(), shape: tensor.dims().to_vec() }
    }

    fn read(&self, tensor: &Tensor) -> Result<Vec<Number>, Fault> {
        Ok(dtypes::numbers(tensor)?)
    }

    fn same_object(&self, left: &Tensor, right: &Tensor) -> bool {
        left.id() == right.id()
    }

    fn storage(&self, tensor: &Tensor) -> Option<usize> {
        Some(std::ptr::from_ref(&*tensor.storage_and_layout().0).addr())
    }

    fn barrier(&self, _values: &[Tensor]) -> Result<(), Fault> {
        for device in &*self.made.borrow() {
            device.synchronize().map_err(Refused::from)?;
        }
        Ok(())
    }

    fn poisoned(&self, error: &ErrorFact) -> bool {
        error.text.contains("CUDA_ERROR_") && LOST.iter().any(|word| error.text.contains(word))
    }
}

impl Candle {
    /// Return the kind and the ordinal of a device that isn't the host.
    fn written(&self, place: &Place) -> Result<(&str, usize), Fault> {
        let other = if self.kind != "cuda" && cfg!(feature = "cuda") && new("cuda", 0).is_ok() { "metal" } else { "cuda" };
        match (place.name.as_str(), self.kind.as_str()) {
            // Where the accelerators are hidden, this is the hidden one.
            ("absent", "cuda") if new("cuda", 0).is_ok() => Ok(("metal", 0)),
            ("absent", _) => Ok((other, 0)),
            ("out-of-range", "cpu") => Err(Fault::NotOffered("candle's Device::Cpu has no ordinal that could be out of range".into())),
            ("out-of-range", kind) => Ok((kind, 99)),
            ("accelerator" | "alias", kind) => Ok((kind, 0)),
            ("peer", kind) => Ok((kind, 1)),
            (name, _) => Err(Fault::NotOffered(format!("candle can't name a device that is {name}: devices are values and never texts"))),
        }
    }
}

/// Return a device as candle prints it in its errors.
fn name(device: &Device) -> String {
    match device.location() {
        DeviceLocation::Cpu => "Cpu".into(),
        other => format!("{other:?}"),
    }
}

fn expression(kind: &str, ordinal: usize) -> String {
    format!("Device::new_{kind}({ordinal})?")
}

fn new(kind: &str, ordinal: usize) -> candle_core::Result<Device> {
    if kind == "metal" { Device::new_metal(ordinal) } else { Device::new_cuda(ordinal) }
}

fn host() -> (String, Role) {
    ("host".into(), Role::measured(name(&Device::Cpu), "Device::Cpu"))
}

/// Return the roles of a kind of accelerator, or why there is none.
fn accelerators(kind: &str) -> Kind {
    // An ordinal that Metal doesn't have is a panic.
    let find =
        |ordinal| catch(|| new(kind, ordinal)).result.map_err(|panic| panic.sentence()).and_then(|made| made.map_err(|e| errors::text(&e)));
    if !BUILT.contains(&(kind, true)) {
        return Err(format!("this worker was built without {kind}: cargo build --release --features {kind}, see adapters/rust/README.md"));
    }
    let first = find(0).map_err(|why| format!("no {kind} device: {}", why.lines().next().unwrap_or_default()))?;
    let role = |device: &Device, ordinal| Role::measured(name(device), expression(kind, ordinal));
    let mut roles = Roles::from([host(), ("accelerator".into(), role(&first, 0)), ("alias".into(), role(&first, 0))]);
    if let Ok(second) = find(1) {
        roles.insert("peer".into(), role(&second, 1));
    }
    Ok(roles)
}

fn main() -> ExitCode {
    worker::serve::<Candle>()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};
    use worker::Worker;

    use super::*;

    fn greeted() -> (Worker<Candle>, Json) {
        let mut worker = Worker::new();
        let hello = worker.answer(&json!({"type": "hello", "id": 1, "framework": "candle", "adapter": null}));
        (worker, hello)
    }

    /// Run steps on the host, and return what they came to.
    fn run(steps: Json) -> Json {
        let reply = greeted().0.answer(&json!({"type": "run", "id": 2, "device": "cpu", "program": {"steps": steps}}));
        assert_eq!(reply["type"], "observation", "{reply}");
        reply["observation"]["steps"].clone()
    }

    fn tensor(id: &str, values: Json, dtype: &str) -> Json {
        json!({"id": id, "op": "tensor", "args": [{"data": values}, {"dtype": dtype}, {"device": "device"}], "attempt": true})
    }

    fn ask(id: &str, op: &str, args: Json) -> Json {
        json!({"id": id, "op": op, "args": args, "attempt": true})
    }

    #[test]
    fn hello_names_the_locked_version_and_why_accelerators_are_missing() {
        let (_, hello) = greeted();
        assert_eq!(hello["version"], "0.11.0");
        assert_eq!(hello["devices"]["cpu"]["roles"]["host"]["expression"], "Device::Cpu");
        for kind in ["cuda", "metal"] {
            let there = &hello["devices"][kind];
            assert!(there["available"] == true || !there["why"].as_str().expect("a reason").is_empty());
        }
    }

    #[test]
    fn the_variable_that_shows_gpus_is_for_cuda_and_left_as_somebody_set_it() {
        let reversed = ("reversed-accelerators", vec![("CUDA_VISIBLE_DEVICES", "1,0")]);
        assert!(shown("cuda", false).contains(&reversed));
        assert!(shown("cuda", true).is_empty() && shown("metal", false).is_empty() && shown("cpu", false).is_empty());
    }

    #[test]
    fn every_offered_operation_has_a_phrase_and_every_dtype_is_written() {
        let (_, hello) = greeted();
        for name in [&hello["operations"], &hello["dtypes"]].into_iter().flat_map(|list| list.as_array().expect("a list")) {
            assert!(hello["phrases"][name.as_str().expect("a name")].is_string(), "{name}");
        }
        assert_eq!(hello["phrases"]["add/1"], "(&{0} + {1})?");
        assert_eq!(hello["phrases"]["tail"], "{0}.i({1}..)?");
    }

    #[test]
    fn every_dtype_that_holds_something_is_made_and_read_back() {
        for (name, _) in
            dtypes::NAMES.iter().filter(|(name, _)| !name.starts_with("float6") && !name.contains("float4") && !name.contains("e8m0"))
        {
            let steps = run(json!([tensor("s1", json!([2, 3]), name), ask("s2", "observe", json!([{"ref": "s1"}]))]));
            assert_eq!(steps["s1"]["value"]["dtype"], *name);
            let read: Vec<f64> = steps["s2"]["value"]["elements"].as_array().expect("elements").iter().filter_map(Json::as_f64).collect();
            assert_eq!(read, [2.0, 3.0], "{name}");
        }
    }

    #[test]
    fn an_error_is_typed_and_says_which_dtypes_and_operation() {
        let steps = run(json!([
            tensor("s1", json!([2.5]), "float64"),
            tensor("s2", json!([2.5]), "float32"),
            ask("s3", "mul", json!([{"ref": "s1"}, {"ref": "s2"}]))
        ]));
        let error = json!({"type": "DTypeMismatchBinaryOp", "module": "candle_core", "bases": ["Error"], "text": "dtype mismatch in mul, lhs: F64, rhs: F32"});
        assert_eq!(steps["s3"], json!({"error": error}));
    }

    #[test]
    fn a_choice_takes_the_truths_of_a_comparison_and_spreads_them_over_the_rows() {
        let two = [json!([[2, 3], [5, 7]]), json!([[11, 13], [17, 19]]), json!([[3, 11]]), json!([[7, 5]])];
        let made = ["s1", "s2", "s3", "s4"].into_iter().zip(two).map(|(id, values)| tensor(id, values, "float32"));
        let asked = [
            ask("s5", "less", json!([{"ref": "s3"}, {"ref": "s4"}])),
            ask("s6", "where", json!([{"ref": "s5"}, {"ref": "s1"}, {"ref": "s2"}])),
            ask("s7", "observe", json!([{"ref": "s6"}])),
        ];
        let steps = run(made.chain(asked).collect());
        assert_eq!(steps["s5"]["value"]["dtype"], "uint8");
        assert_eq!(steps["s7"]["value"]["elements"], json!([2.0, 13.0, 5.0, 19.0]));
        assert_eq!(greeted().1["phrases"]["where"], "{0}.broadcast_as({1}.shape())?.where_cond(&{1}, &{2})?");
    }

    #[test]
    fn a_move_to_where_it_is_is_the_same_tensor_a_view_shares_storage_and_a_copy_does_not() {
        let same = |id: &str, other: &str| ask(id, "same", json!([{"ref": "s1"}, {"ref": other}]));
        let steps = run(json!([
            tensor("s1", json!([2.5, 3.5]), "float32"),
            ask("s2", "to", json!([{"ref": "s1"}, {"device": "host"}])),
            ask("s3", "tail", json!([{"ref": "s1"}, 1])),
            ask("s4", "to_copy", json!([{"ref": "s1"}, {"device": "host"}])),
            same("s5", "s2"),
            same("s6", "s3"),
            same("s7", "s4")
        ]));
        let found = ["s5", "s6", "s7"].map(|id| (steps[id]["value"]["object"].clone(), steps[id]["value"]["storage"].clone()));
        assert_eq!(found, [(json!(true), json!(true)), (json!(false), json!(true)), (json!(false), json!(false))]);
    }

    #[test]
    fn devices_are_written_as_values_alone() {
        let name = |place: Json| run(json!([ask("s1", "name", json!([place]))]))["s1"].clone();
        assert_eq!(name(json!({"device": "host"}))["value"]["text"], "Cpu");
        assert!(name(json!({"device": "host", "spelled": "string"}))["not_offered"].is_string());
        assert!(name(json!({"device": "misspelt"}))["not_offered"].is_string());
        if !cfg!(feature = "cuda") {
            assert_eq!(name(json!({"device": "absent"}))["error"]["type"], "NotCompiledWithCudaSupport");
        }
    }

    #[test]
    fn layers_are_built_by_a_loader_and_by_hand_and_nothing_is_registered() {
        let weight = |id: &str, of: &str| ask(id, "member", json!([{"ref": of}, "weight"]));
        let steps = run(json!([
            tensor("s1", json!([[2, 3], [3, 5]]), "float32"),
            ask("s2", "loader", json!([{"ref": "s1"}, {"device": "host"}])),
            ask("s3", "load", json!([{"ref": "s2"}, 2])),
            ask("s4", "loader_to", json!([{"ref": "s2"}, {"device": "host"}])),
            ask("s5", "load", json!([{"ref": "s4"}, 3])),
            weight("s6", "s3"),
            ask("s7", "linear", json!([{"ref": "s1"}])),
            ask("s8", "call", json!([{"ref": "s7"}, {"ref": "s1"}])),
            ask("s9", "observe", json!([{"ref": "s8"}])),
            ask("s10", "holder", json!([{"ref": "s1"}, "buffer"])),
        ]));
        assert_eq!(steps["s4"]["value"], json!({"kind": "handle", "text": "VarBuilder on Cpu"}));
        assert_eq!(steps["s5"]["error"]["type"], "UnexpectedShape");
        assert_eq!(steps["s6"]["value"]["shape"], json!([2, 2]));
        assert_eq!(steps["s9"]["value"]["elements"], json!([13.0, 21.0, 21.0, 34.0]));
        assert_eq!(steps["s10"]["not_offered"], "candle offers no holder");
    }

    #[test]
    fn numbers_that_rust_does_not_convert_are_not_offered() {
        let beside = |number: Json| {
            run(json!([tensor("s1", json!([2.5]), "float32"), ask("s2", "add", json!([number, {"ref": "s1"}]))]))["s2"].clone()
        };
        assert_eq!(beside(json!(0.5))["value"]["dtype"], "float32");
        assert_eq!(beside(json!(3))["not_offered"], "candle offers no add of a whole number and a tensor");
        assert!(beside(json!(true))["not_offered"].is_string());
    }
}
