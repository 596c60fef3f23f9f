//! Device kinds, the roles in them, and how each is named.

use burn::backend::{CubeDevice, Device as _, DispatchDevice, WgpuBackend, WgpuDeviceKind};
use burn::tensor::{Device, DeviceKind, DeviceType};
use worker::{Fault, Identity, Kind, Place, Role, Roles, catch, locked};

const MANIFEST: &str = include_str!("../Cargo.toml");
/// One piece of hardware by its own name, best first: what `DefaultDevice` chooses between.
const NAMED: [(&str, DeviceKind, WgpuDeviceKind); 4] = [
    ("Device::wgpu(DeviceKind::DiscreteGpu(0))", DeviceKind::DiscreteGpu(0), WgpuDeviceKind::DiscreteGpu(0)),
    ("Device::wgpu(DeviceKind::IntegratedGpu(0))", DeviceKind::IntegratedGpu(0), WgpuDeviceKind::IntegratedGpu(0)),
    ("Device::wgpu(DeviceKind::VirtualGpu(0))", DeviceKind::VirtualGpu(0), WgpuDeviceKind::VirtualGpu(0)),
    ("Device::wgpu(DeviceKind::Cpu)", DeviceKind::Cpu, WgpuDeviceKind::Cpu),
];
const FLEX: &str = "Device::flex()";
const NDARRAY: &str = "Device::ndarray()";
const WGPU: &str = "Device::wgpu(DeviceKind::DefaultDevice)";
const VULKAN: &str = "Device::vulkan(DeviceKind::DefaultDevice)";
const METAL: &str = "Device::metal(DeviceKind::DefaultDevice)";
const DEFAULT: &str = "Device::default()";

/// Return the device that an expression means. Panics where burn does.
#[allow(deprecated, reason = "ndarray is one of the backends that are asked")]
fn evaluate(expression: &str) -> Option<Device> {
    Some(match expression {
        FLEX => Device::flex(),
        NDARRAY => Device::ndarray(),
        WGPU => Device::wgpu(DeviceKind::DefaultDevice),
        VULKAN => Device::vulkan(DeviceKind::DefaultDevice),
        METAL => Device::metal(DeviceKind::DefaultDevice),
        DEFAULT => Device::default(),
        #[cfg(feature = "cuda")]
        "Device::cuda(0)" => Device::cuda(0),
        #[cfg(feature = "cuda")]
        "Device::cuda(1)" => Device::cuda(1),
        #[cfg(feature = "cuda")]
        "Device::cuda(DeviceIndex::Default)" => Device::cuda(burn::tensor::DeviceIndex::Default),
        #[cfg(feature = "cuda")]
        "Device::cuda(99)" => Device::cuda(99),
        _ => {
            let found = NAMED.iter().find(|(text, ..)| *text == expression).map(|(_, kind, _)| kind.clone());
            let (second, beyond) = (|| DeviceKind::DiscreteGpu(1), || DeviceKind::DiscreteGpu(99));
            match expression {
                "Device::wgpu(DeviceKind::DiscreteGpu(1))" => Device::wgpu(second()),
                "Device::vulkan(DeviceKind::DiscreteGpu(1))" => Device::vulkan(second()),
                "Device::metal(DeviceKind::DiscreteGpu(1))" => Device::metal(second()),
                "Device::wgpu(DeviceKind::DiscreteGpu(99))" => Device::wgpu(beyond()),
                "Device::vulkan(DeviceKind::DiscreteGpu(99))" => Device::vulkan(beyond()),
                "Device::metal(DeviceKind::DiscreteGpu(99))" => Device::metal(beyond()),
                _ => Device::wgpu(found?),
            }
        }
    })
}

/// Return a device as burn prints it.
pub fn name(device: &Device) -> String {
    format!("{device:?}")
}

/// Return version and build.
pub fn identity() -> Identity {
    let features = MANIFEST.split("features = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
    let mut features = features.replace(['"', ' '], "");
    if cfg!(feature = "cuda") {
        features += ",cuda";
    }
    let default = catch(|| name(&Device::default())).result.unwrap_or_else(|panic| panic.sentence());
    let build = [("features".to_owned(), features), ("default device".to_owned(), default)].into_iter().collect();
    Identity { version: locked(include_str!("../Cargo.lock"), "burn"), build }
}

/// Return how the runtime below burn writes a device in its own errors.
fn mention(device: &Device) -> Option<String> {
    match device.as_dispatch() {
        DispatchDevice::Cube(CubeDevice::Wgpu(device)) => Some(device.to_id().to_string()),
        #[cfg(feature = "cuda")]
        DispatchDevice::Cube(CubeDevice::Cuda(device)) => Some(device.to_id().to_string()),
        _ => None,
    }
}

fn role(expression: &str, simulated: bool) -> Role {
    // Only the default can panic, where the environment names one that isn't there; what it is then has no name.
    let device = catch(|| evaluate(expression)).result.ok().flatten();
    let name = device.as_ref().map_or_else(|| expression.into(), name);
    let role = if simulated { Role::simulated(name, expression) } else { Role::measured(name, expression) };
    Role { mention: device.as_ref().and_then(mention), ..role }
}

fn roles(parts: [Option<(&str, &str, bool)>; 3]) -> Roles {
    let host = ("host".to_owned(), role(FLEX, false));
    let others = parts.into_iter().flatten().map(|(name, expression, simulated)| (name.to_owned(), role(expression, simulated)));
    [host].into_iter().chain(others).collect()
}

/// Return each device kind by its name, here or not.
pub fn kinds() -> Vec<(String, Kind)> {
    let ndarray = roles([Some(("accelerator", NDARRAY, false)), None, None]);
    [
        ("flex", Ok(roles([None, None, None]))),
        ("ndarray", Ok(ndarray)),
        ("wgpu", wgpu()),
        ("vulkan", vulkan()),
        ("metal", metal()),
        ("cuda", cuda()),
    ]
    .map(|(name, kind)| (name.to_owned(), kind))
    .into()
}

/// The hardware behind a graphics interface.
struct Adapters {
    /// What is there, by its place in `NAMED`.
    first: Vec<usize>,
    /// There is a second GPU that is as good as the one that `DefaultDevice` means.
    second: bool,
    /// `DefaultDevice` means what the environment says.
    chosen: Option<String>,
}

/// Return what hardware is behind the adapters of a graphics interface.
fn adapters(of: DeviceType) -> Adapters {
    let found: Vec<WgpuDeviceKind> = Device::enumerate(of)
        .iter()
        .filter_map(|device| match device.as_dispatch() {
            DispatchDevice::Cube(CubeDevice::Wgpu(device)) => Some(device.kind.clone()),
            _ => None,
        })
        .collect();
    let chosen = std::env::var("CUBECL_WGPU_DEFAULT_DEVICE").ok().map(|named| named.trim().to_owned());
    Adapters::of(&found, chosen)
}

impl Adapters {
    fn of(found: &[WgpuDeviceKind], chosen: Option<String>) -> Self {
        let first = (0..NAMED.len()).filter(|at| found.contains(&NAMED[*at].2)).collect();
        Self { first, second: chosen.is_none() && found.contains(&WgpuDeviceKind::DiscreteGpu(1)), chosen }
    }

    /// Say whether the default adapter computes on the host's processor.
    fn software(&self) -> bool {
        self.first == [NAMED.len() - 1] || self.chosen.as_deref() == Some("Cpu")
    }

    /// Return how the default adapter is called by its own name; `None` where the environment may mean another one.
    fn named(&self) -> Option<&'static str> {
        let best = NAMED[*self.first.first()?].0;
        (self.chosen.is_none() || self.first.len() == 1).then_some(best)
    }

    /// Return the roles beside the host.
    fn roles(&self, accelerator: &str, alias: Option<&str>, peer: &str) -> Roles {
        let simulated = self.software();
        let alias = alias.map(|expression| ("alias", expression, simulated));
        roles([Some(("accelerator", accelerator, simulated)), alias, self.second.then_some(("peer", peer, false))])
    }
}

/// Say whether a device computes on the host's processor in place of one of its own.
pub fn simulated(device: &Device) -> bool {
    let DispatchDevice::Cube(CubeDevice::Wgpu(device)) = device.as_dispatch() else { return false };
    let of = match device.backend {
        WgpuBackend::Vulkan => DeviceType::Vulkan,
        WgpuBackend::Metal => DeviceType::Metal,
        _ => DeviceType::Wgpu,
    };
    match device.kind {
        WgpuDeviceKind::Cpu => true,
        WgpuDeviceKind::DefaultDevice => adapters(of).software(),
        _ => false,
    }
}

fn wgpu() -> Kind {
    let adapters = adapters(DeviceType::Wgpu);
    if adapters.first.is_empty() {
        return Err("no adapter for wgpu: it needs a Vulkan driver, on Debian mesa-vulkan-drivers and libvulkan1".into());
    }
    Ok(adapters.roles(WGPU, adapters.named(), "Device::wgpu(DeviceKind::DiscreteGpu(1))"))
}

fn vulkan() -> Kind {
    let adapters = adapters(DeviceType::Vulkan);
    if adapters.first.is_empty() {
        return Err("no Vulkan adapter: install a driver, on Debian mesa-vulkan-drivers and libvulkan1".into());
    }
    Ok(adapters.roles(VULKAN, Some(DEFAULT), "Device::vulkan(DeviceKind::DiscreteGpu(1))"))
}

fn metal() -> Kind {
    let adapters = adapters(DeviceType::Metal);
    if adapters.first.is_empty() {
        return Err("no Metal here: Device::metal(..) is a value on every system, and using it panics".into());
    }
    Ok(adapters.roles(METAL, Some(DEFAULT), "Device::metal(DeviceKind::DiscreteGpu(1))"))
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Kind {
    Err("this worker was built without CUDA: cargo build --release --features cuda in adapters/rust/burn".into())
}

#[cfg(feature = "cuda")]
fn cuda() -> Kind {
    match Device::enumerate(DeviceType::Cuda).len() {
        0 => Err("no CUDA device: Device::enumerate(DeviceType::Cuda) is empty".into()),
        count => {
            let peer = (count > 1).then_some(("peer", "Device::cuda(1)", false));
            let alias = Some(("alias", "Device::cuda(DeviceIndex::Default)", false));
            Ok(roles([Some(("accelerator", "Device::cuda(0)", false)), alias, peer]))
        }
    }
}

/// The devices of one kind.
pub struct Kinds {
    kind: String,
    expressions: Vec<(String, String)>,
}

impl Kinds {
    /// Take a kind and its roles.
    pub fn new(kind: &str, roles: &Roles) -> Self {
        Self { kind: kind.into(), expressions: roles.iter().map(|(name, role)| (name.clone(), role.expression.clone())).collect() }
    }

    /// Say whether a place is one of the roles.
    pub fn is_role(&self, name: &str) -> bool {
        self.expressions.iter().any(|(role, _)| role == name)
    }

    /// Name a device.
    ///
    /// # Errors
    /// That burn can't name it so. Panics where burn does.
    pub fn device(&self, place: &Place) -> Result<Device, Fault> {
        if place.spelled != "object" {
            return Err(Fault::NotOffered(format!("burn has no {} spelling of a device", place.spelled)));
        }
        match self.expressions.iter().find(|(role, _)| *role == place.name) {
            Some((_, expression)) => {
                evaluate(expression).ok_or_else(|| Fault::AdapterFailed(format!("{expression} is no device of this worker")))
            }
            None => self.missing(&place.name).map(|(_, device)| device),
        }
    }

    /// Return how a device that isn't here is written, and the device.
    ///
    /// # Errors
    /// That there is no such way.
    pub fn missing(&self, name: &str) -> Result<(String, Device), Fault> {
        let expression = match name {
            "absent" if Device::enumerate(DeviceType::Metal).is_empty() => METAL.to_owned(),
            "absent" if Device::enumerate(DeviceType::Vulkan).is_empty() => VULKAN.to_owned(),
            "absent" => return Err(Fault::NotOffered("every backend that is compiled in has a device here".into())),
            "out-of-range" if self.kind == "cuda" => "Device::cuda(99)".to_owned(),
            "out-of-range" if ["wgpu", "vulkan", "metal"].contains(&self.kind.as_str()) => {
                format!("Device::{}(DeviceKind::DiscreteGpu(99))", self.kind)
            }
            "out-of-range" => return Err(Fault::NotOffered(format!("burn's {} has no ordinals", self.kind))),
            _ => return Err(Fault::NotOffered("a misspelt device doesn't compile".into())),
        };
        let device = evaluate(&expression).ok_or_else(|| Fault::AdapterFailed(format!("{expression} is no device of this worker")))?;
        Ok((expression, device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_features_are_those_of_the_manifest() {
        let identity = identity();
        assert!(identity.version.split('.').count() == 3 && identity.version.starts_with("0."), "{}", identity.version);
        assert!(identity.build["features"].starts_with("std,flex,ndarray,"));
    }

    #[test]
    fn every_role_is_written_as_something_that_means_a_device() {
        for (kind, found) in kinds() {
            let Ok(found) = found else { continue };
            let kinds = Kinds::new(&kind, &found);
            for name in found.keys() {
                let place = Place { name: name.clone(), spelled: "object".into() };
                assert_eq!(super::name(&kinds.device(&place).expect("a role is a device")), found[name].name);
            }
        }
    }

    #[test]
    fn a_device_of_a_runtime_below_is_mentioned_by_its_number() {
        assert_eq!(mention(&Device::flex()), None);
        assert_eq!(mention(&Device::wgpu(DeviceKind::DefaultDevice)).as_deref(), Some("DeviceId(type=4, index=0)"));
    }

    #[test]
    fn where_a_value_lands_by_default_is_simulated_as_the_role_of_that_device_is() {
        assert!(!simulated(&Device::flex()));
        assert!(simulated(&Device::wgpu(DeviceKind::Cpu)) && !simulated(&Device::wgpu(DeviceKind::DiscreteGpu(0))));
        for (kind, device) in [("wgpu", Device::wgpu(DeviceKind::DefaultDevice)), ("vulkan", Device::vulkan(DeviceKind::DefaultDevice))] {
            let Some((_, Ok(roles))) = kinds().into_iter().find(|(name, _)| name == kind) else { continue };
            assert_eq!(if simulated(&device) { "simulated" } else { "measured" }, roles["accelerator"].evidence, "{kind}");
        }
    }

    #[test]
    fn a_second_gpu_is_the_peer_and_a_default_of_the_users_choice_has_no_other_name() {
        let gpus = [WgpuDeviceKind::DiscreteGpu(0), WgpuDeviceKind::DiscreteGpu(1), WgpuDeviceKind::Cpu];
        let expression = |roles: &Roles, role: &str| roles.get(role).map(|role| role.expression.clone());
        let asked = |found: &[WgpuDeviceKind], chosen: Option<&str>| {
            let adapters = Adapters::of(found, chosen.map(str::to_owned));
            adapters.roles(WGPU, adapters.named(), "Device::wgpu(DeviceKind::DiscreteGpu(1))")
        };
        let two = asked(&gpus, None);
        assert_eq!(expression(&two, "alias").as_deref(), Some("Device::wgpu(DeviceKind::DiscreteGpu(0))"));
        assert_eq!(expression(&two, "peer").as_deref(), Some("Device::wgpu(DeviceKind::DiscreteGpu(1))"));
        assert_eq!(expression(&asked(&gpus[..1], None), "peer"), None);
        let chosen = asked(&gpus, Some("DiscreteGpu(1)"));
        assert_eq!((expression(&chosen, "alias"), expression(&chosen, "peer")), (None, None));
    }

    #[test]
    fn a_kind_that_is_not_here_says_why_in_one_sentence() {
        for (kind, found) in kinds() {
            let Err(why) = found else { continue };
            assert!(why.len() > 20 && !why.contains('\n'), "{kind}: {why}");
        }
    }

    #[test]
    fn devices_that_are_not_here_are_written_otherwise_than_those_that_are() {
        let (kind, found) = kinds().into_iter().find(|(kind, _)| kind == "ndarray").expect("it is always compiled in");
        let kinds = Kinds::new(&kind, &found.expect("and always here"));
        assert!(kinds.missing("misspelt").is_err() && kinds.missing("out-of-range").is_err());
        if let Ok((expression, device)) = kinds.missing("absent") {
            assert!(expression.starts_with("Device::"));
            assert_ne!(device, Device::flex());
        }
    }
}
