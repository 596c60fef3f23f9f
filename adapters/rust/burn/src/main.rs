//! Answers for burn: each backend that is compiled in is a device kind, and any two can be mixed in one program.
// burn's types nest deeper than the compiler's own limit.
#![recursion_limit = "256"]

mod devices;
mod modules;
mod operations;
mod tensors;

use std::any::Any;
use std::cell::RefCell;
use std::process::ExitCode;

use burn::tensor::Device;
use worker::{Comparison, ErrorFact, Facts, Fault, Framework, Identity, Kind, Number, Operation, Place, Roles};

use crate::devices::Kinds;
use crate::tensors::Variable;

/// burn on one kind of device.
struct Burn {
    kinds: Kinds,
    /// Devices that this process works on, to be waited for.
    used: RefCell<Vec<Device>>,
    /// Devices that a value landed on and that have no role, and whether they are simulated: looking for adapters takes its time.
    landed: RefCell<Vec<(Device, bool)>>,
}

impl Framework for Burn {
    type Tensor = Variable;
    type Device = Device;
    type Error = Fault;

    const NAME: &'static str = "burn";
    const MODULE: &'static str = "burn";
    const VARIABLES: &'static [&'static str] = &[
        "BURN_DEVICE",
        "AUTO_GRAPHICS_BACKEND",
        "CUBECL_WGPU_DEFAULT_DEVICE",
        "CUBECL_WGPU_MAX_TASKS",
        "CUBECL_DEBUG_OPTION",
        "WGPU_ADAPTER_NAME",
        "WGPU_BACKEND",
        "WGPU_POWER_PREF",
        "VK_DRIVER_FILES",
        "VK_ICD_FILENAMES",
        "VK_LOADER_LAYERS_ENABLE",
        "LP_NUM_THREADS",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_PATH",
    ];

    fn identity() -> Identity {
        devices::identity()
    }

    fn kinds() -> Vec<(String, Kind)> {
        devices::kinds()
    }

    fn dtypes() -> Vec<&'static str> {
        tensors::DTYPES.iter().map(|(name, _)| *name).collect()
    }

    fn operations() -> Vec<Operation<Self>> {
        operations::operations()
    }

    fn phrases() -> Vec<(&'static str, &'static str)> {
        operations::phrases()
    }

    fn environments() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        // One that nobody knows, and one that is known and never compiled in here.
        vec![("default-misspelt", vec![("BURN_DEVICE", "vulkann")]), ("default-absent", vec![("BURN_DEVICE", "rocm")])]
    }

    fn kind_environments(kind: &str) -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        let name = ["ndarray", "wgpu", "vulkan", "metal", "cuda"].into_iter().find(|name| *name == kind);
        name.map(|name| ("default-accelerator", vec![("BURN_DEVICE", name)])).into_iter().collect()
    }

    fn open(kind: &str, roles: &Roles) -> Self {
        Self { kinds: Kinds::new(kind, roles), used: RefCell::default(), landed: RefCell::default() }
    }

    fn device(&self, place: &Place) -> Result<Device, Fault> {
        let device = self.kinds.device(place)?;
        let mut used = self.used.borrow_mut();
        // A device that isn't there has nothing to be waited for.
        if self.kinds.is_role(&place.name) && !used.contains(&device) {
            used.push(device.clone());
        }
        Ok(device)
    }

    fn missing(&self, place: &Place) -> Option<String> {
        // A device is written as an object and no other way.
        if place.spelled == "object" { self.kinds.missing(&place.name).ok().map(|(expression, _)| expression) } else { None }
    }

    fn device_name(&self, device: &Device) -> String {
        devices::name(device)
    }

    fn compare(&self, left: &Device, right: &Device) -> Comparison {
        Comparison { equal: left == right, mirrored: right == left, hash: None }
    }

    fn describe(&self, tensor: &Variable) -> Facts {
        tensor.facts()
    }

    fn simulated(&self, tensor: &Variable) -> bool {
        let device = tensor.device();
        let known = self.landed.borrow().iter().find(|(known, _)| *known == device).map(|(_, simulated)| *simulated);
        known.unwrap_or_else(|| {
            let simulated = devices::simulated(&device);
            self.landed.borrow_mut().push((device, simulated));
            simulated
        })
    }

    fn read(&self, tensor: &Variable) -> Result<Vec<Number>, Fault> {
        tensor.read()
    }

    fn same_object(&self, left: &Variable, right: &Variable) -> bool {
        left.is(right)
    }

    fn storage(&self, tensor: &Variable) -> Option<usize> {
        tensor.storage()
    }

    fn barrier(&self, values: &[Variable]) -> Result<(), Fault> {
        let mut devices = self.used.borrow().clone();
        // Values that nobody placed may be on yet another device.
        for device in values.iter().map(Variable::device) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        devices.iter().try_for_each(|device| device.sync()).map_err(|error| failed(&error))
    }

    fn poisoned(&self, error: &ErrorFact) -> bool {
        // A wgpu device that its driver gave up stays so for the process.
        error.text.contains("device is poisoned")
    }

    fn scope(&self, name: &str, _device: Option<&Device>) -> Result<Box<dyn Any>, Fault> {
        Err(Fault::NotOffered(match name {
            "default-device" => "burn's default device is chosen by cargo features and BURN_DEVICE, for the whole process".into(),
            "inference" => "burn records gradients only on a device made for it: there is no region without".into(),
            _ => format!("burn has no {name} scope"),
        }))
    }
}

/// Return an error that burn gives back instead of panicking.
fn failed(error: &burn::tensor::ExecutionError) -> Fault {
    Fault::Error(ErrorFact { kind: "ExecutionError".into(), module: "burn".into(), bases: Vec::new(), text: error.to_string() })
}

fn main() -> ExitCode {
    worker::serve::<Burn>()
}
