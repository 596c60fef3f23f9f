//! burn's own answers to some of the suite's questions: run it alone, it needs burn and nothing of the suite.
//!
//! Each question is asked in burn's own API and printed as one JSON line: the facts, and the word that they come
//! to. Questions about an environment, and those that may end the process, are asked of one of their own. With `document NAME` it is one of the
//! little programs of a published page about "not on the same device", which ends as that page says.
#![recursion_limit = "256"]

mod modules;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::Command;
use std::time::Instant;

use burn::tensor::module::embedding;
use burn::tensor::{DType, Device, DeviceKind, DeviceType, Int, Tensor};
use serde_json::{Value, json};

/// Distinct, and neither zero nor one.
const FOUR: [f32; 4] = [2.5, 3.5, 5.5, 7.5];
const OTHERS: [f32; 4] = [11.0, 13.0, 17.0, 19.0];
/// Edge of a matrix.
const N: usize = 256;

/// A target's name, and its two devices.
struct Pair {
    target: &'static str,
    host: Device,
    device: Device,
}

impl Pair {
    fn say(&self, case: &str, mut facts: Value) {
        facts["target"] = json!(self.target);
        facts["case"] = json!(case);
        println!("{facts}");
    }

    /// Ask; a panic is one answer, and then a healthy sum must still work.
    fn told<T>(&self, ask: impl FnOnce() -> T, word: impl FnOnce(T) -> Value) -> Value {
        let asked = catch_unwind(AssertUnwindSafe(ask));
        let refused = if asked.is_err() { "raises" } else { "raises-late" };
        asked
            .and_then(|made| catch_unwind(AssertUnwindSafe(|| word(made))))
            .unwrap_or_else(|_| json!({"answer": refused, "error": "panic", "healthy": healthy(&self.device)}))
    }
}

fn healthy(device: &Device) -> bool {
    let two = || Tensor::<1>::full([2], 3.0, device);
    catch_unwind(AssertUnwindSafe(|| numbers(two() + two()) == [6.0, 6.0])).unwrap_or(false)
}

fn four(device: &Device) -> Tensor<1> {
    Tensor::from_floats(FOUR, device)
}

fn ramp(start: i64, device: &Device) -> Tensor<2> {
    let count = i64::try_from(N * N).expect("a small number");
    Tensor::<1, Int>::arange(start..start + count, device).float().reshape([N, N])
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().convert::<f32>().try_to_vec::<f32>().expect("floats were asked for")
}

fn dtype(of: DType) -> &'static str {
    match of {
        DType::F64 => "float64",
        DType::F32 => "float32",
        DType::F16 => "float16",
        DType::I64 => "int64",
        DType::I32 => "int32",
        _ => "another",
    }
}

/// Facts about a result that should hold these numbers; `word` is what it is called where it does.
fn right<const D: usize>(x: Tensor<D>, expected: &[f32], word: &str) -> Value {
    let made = dtype(x.dtype());
    let same = numbers(x) == expected;
    json!({"answer": if same { word } else { "garbage" }, "dtype": made, "value": if same { "right" } else { "wrong" }})
}

fn landed<const D: usize>(x: Tensor<D>, expected: &[f32], device: &Device, word: &str) -> Value {
    let word = if &x.device() == device { word } else { "moves-elsewhere" };
    right(x, expected, word)
}

fn equality(left: &Device, right: &Device) -> Value {
    json!({"answer": if left == right { "equal" } else { "unequal" }})
}

fn sums() -> [f32; 4] {
    std::array::from_fn(|i| FOUR[i] + OTHERS[i])
}

// --- one device ----------------------------------------------------------------------------------

fn alone(pair: &Pair) {
    let device = &pair.device;
    pair.say(
        "placement/add/device-device",
        pair.told(|| four(device) + four(device), |y| landed(y, &FOUR.map(|v| 2.0 * v), device, "works")),
    );
    pair.say("scalars/python-float/add/right", pair.told(|| four(device) + 2.5, |y| right(y, &FOUR.map(|v| v + 2.5), "keeps-dtype")));
    let ints = pair.told(
        || Tensor::<1, Int>::from_data([2, 3, 5, 7], device) * 2.5,
        |y| json!({"answer": if y.dtype().is_int() { "truncates" } else { "other-dtype" }, "dtype": dtype(y.dtype())}),
    );
    // The suite makes the tensor in a dtype of its own, which no default decides.
    pair.say("scalars/python-float-on-int32/mul/left", json!({"answer": ints["answer"]}));
    pair.say(
        "dtypes/literal/float",
        pair.told(
            || four(device),
            |y| {
                let word = dtype(y.dtype());
                right(y, &FOUR, word)
            },
        ),
    );
    elsewhere(pair, "loop", None);
    elsewhere(pair, "product", None);
}

fn product(pair: &Pair) {
    let expected = vec![6.0 * 256.0; N * N];
    let full = |value: f32| Tensor::<2>::full([N, N], value, &pair.device);
    let made = pair.told(|| full(2.0).matmul(full(3.0)), |y| landed(y, &expected, &pair.device, "works"));
    pair.say("placement/matmul/device-device", made);
}

/// Time 20 chained products in three later rounds, up to five times until they decide.
fn loops(device: &Device) -> &'static str {
    let start = Tensor::<2>::full([N, N], 3.0, device);
    let part = Tensor::<2>::full([N, N], 1.0 / 256.0, device);
    for _ in 0..5 {
        let parts: Vec<f64> = (0..4)
            .map(|_| {
                let (mut value, started) = (start.clone(), Instant::now());
                for _ in 0..20 {
                    value = part.clone().matmul(value);
                }
                let returned = started.elapsed().as_secs_f64();
                device.sync().expect("a healthy device");
                returned / started.elapsed().as_secs_f64()
            })
            .skip(1)
            .collect();
        if parts.iter().all(|p| *p <= 0.5) {
            return "asynchronous";
        }
        if parts.iter().all(|p| *p >= 0.8) {
            return "synchronous";
        }
    }
    "inconclusive"
}

// --- two devices ---------------------------------------------------------------------------------

fn mixed(pair: &Pair) {
    let Pair { host, device, .. } = pair;
    for (order, left, right) in [("host-accelerator", host, device), ("accelerator-host", device, host)] {
        pair.say(&format!("placement/add/{order}"), pair.told(|| ramp(2, left) + ramp(5, right), |_| json!({"answer": "moves"})));
        let joined =
            pair.told(|| Tensor::cat(vec![ramp(2, left), ramp(5, right)], 0), |y| json!({"answer": "moves", "read": numbers(y)[0]}));
        pair.say(&format!("placement/cat/{order}"), joined);
        let looked = pair.told(
            || embedding(ramp(2, left), Tensor::<2, Int>::from_data([[3, 1, 200, 1]], right)),
            |y| json!({"answer": "moves", "read": numbers(y)[0]}),
        );
        pair.say(&format!("placement/embedding/{order}"), looked);
    }
    pair.say("moving/to-accelerator/object", pair.told(|| four(host).to_device(device), |y| landed(y, &FOUR, device, "moves")));
    pair.say("moving/to-host/object", pair.told(|| four(device).to_device(host), |y| landed(y, &FOUR, host, "moves")));
    let summed = pair.told(|| four(host).to_device(device) + Tensor::from_floats(OTHERS, device), |y| landed(y, &sums(), device, "works"));
    pair.say("moving/moved/host-accelerator/left", summed);
    pair.say("moving/equality/host-accelerator", equality(host, device));
    let unplaced = || Tensor::<1>::from(FOUR);
    pair.say("moving/equality/default-accelerator", equality(&unplaced().device(), device));
    let beside = pair.told(|| unplaced() + Tensor::from_floats(OTHERS, device), |y| landed(y, &sums(), device, "moves-to-accelerator"));
    pair.say("moving/uncommitted/any-accelerator/left", beside);
}

/// A runtime that counts the owners of a buffer tells whether two tensors share it.
fn shared(pair: &Pair) {
    let x = four(&pair.device);
    let same = x.clone().to_device(&pair.device);
    let with_both = same.can_mut();
    drop(x);
    let word = if !with_both && same.can_mut() { "shared-storage" } else { "copy" };
    pair.say("moving/to-same/object", json!({"answer": word}));
}

// --- two names for one piece of hardware, and a default that the environment chooses --------------

fn aliased(pair: &Pair, alias: &Device) {
    let device = &pair.device;
    pair.say("moving/equality/device-alias", equality(device, alias));
    let pinned = || Tensor::<1>::from_floats(OTHERS, device);
    for (side, ask) in [("left", true), ("right", false)] {
        let sum = || if ask { four(alias) + pinned() } else { pinned() + four(alias) };
        pair.say(&format!("moving/alias/alias-device/{side}"), pair.told(sum, |y| landed(y, &sums(), device, "works")));
    }
    let joined: Vec<f32> = FOUR.into_iter().chain(OTHERS).collect();
    let cat = || Tensor::cat(vec![four(alias), pinned()], 0);
    pair.say("moving/alias-cat/alias-device/left", pair.told(cat, |y| landed(y, &joined, device, "works")));
    let moved = || four(alias).to_device(device) + pinned();
    pair.say("moving/alias-moved/alias-device/left", pair.told(moved, |y| landed(y, &sums(), device, "works")));
}

/// Ask a process of its own, whose default device the environment may name.
fn elsewhere(pair: &Pair, question: &str, named: Option<&str>) {
    let here = env::current_exe().expect("a program knows where it is");
    let mut again = Command::new(here);
    again.args(["alone", question, pair.target]).env_remove("BURN_DEVICE").envs(named.map(|named| ("BURN_DEVICE", named)));
    let done = again.output().expect("it starts again");
    match question {
        "loop" if !done.status.success() => pair.say("time/loop/matmul", json!({"answer": "crashed"})),
        "product" if !done.status.success() => pair.say("placement/matmul/device-device", json!({"answer": "crashed"})),
        _ => print!("{}", String::from_utf8_lossy(&done.stdout)),
    }
}

fn answer(question: &str, pair: &Pair) {
    let device = &pair.device;
    if question == "loop" {
        pair.say("time/loop/matmul", json!({"answer": loops(device)}));
    } else if question == "product" {
        product(pair);
    } else if question == "named" {
        let unplaced = || Tensor::<1>::from(FOUR);
        pair.say("moving/default-named/equals-accelerator", equality(&unplaced().device(), device));
        let sum = || unplaced() + Tensor::from_floats(OTHERS, device);
        pair.say("moving/default-named/add/left", pair.told(sum, |y| landed(y, &sums(), device, "works")));
    } else {
        let made = || Tensor::<1>::zeros([4], &Device::default());
        pair.say(&format!("moving/default-{question}/create"), pair.told(made, |_| json!({"answer": "falls-back"})));
        let named = pair.told(|| four(&pair.host), |y| right(y, &FOUR, "works"));
        pair.say(&format!("moving/default-{question}/host"), named);
    }
}

// --- the page's own programs ---------------------------------------------------------------------

fn document(name: &str) {
    let pinned = Device::vulkan(DeviceKind::DefaultDevice);
    let there = || Tensor::<1>::from_floats([3.0, 4.0], &pinned);
    match name {
        "mixed" => {
            let a = Tensor::<1>::from_floats([1.0, 2.0], &Device::default());
            let _ = a + there();
        }
        "from" => {
            let a: Tensor<1> = Tensor::from([1.0f32, 2.0]);
            println!("a on {:?}", a.device());
            let _ = a + there();
        }
        "one-device" => {
            let a = Tensor::<1>::from_data([1.0f32, 2.0], &pinned);
            println!("{:?}", numbers(a + there()));
        }
        "metal" => println!("== metal: {}", Device::default() == Device::metal(DeviceKind::DefaultDevice)),
        "wgpu" => println!("== wgpu: {}", Device::default() == Device::wgpu(DeviceKind::DefaultDevice)),
        _ => {
            println!("Device::default() = {:?}", Device::default());
            println!("== vulkan: {}", Device::default() == pinned);
            println!("{:?}", numbers(Tensor::<1>::from([1.0f32, 2.0]) + there()));
        }
    }
}

fn pair(target: &str) -> Pair {
    let host = Device::flex();
    match target {
        #[allow(deprecated, reason = "the suite asks it too")]
        "burn:ndarray" => Pair { target: "burn:ndarray", host, device: Device::ndarray() },
        "burn:wgpu" => Pair { target: "burn:wgpu", host, device: Device::wgpu(DeviceKind::DefaultDevice) },
        "burn:vulkan" => Pair { target: "burn:vulkan", host, device: Device::vulkan(DeviceKind::DefaultDevice) },
        _ => Pair { target: "burn:flex", device: host.clone(), host },
    }
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["document", name] = words[..] {
        return document(name);
    }
    set_hook(Box::new(|_| ()));
    if let ["alone", question, target] = words[..] {
        return answer(question, &pair(target));
    }
    let flex = pair("burn:flex");
    alone(&flex);
    elsewhere(&flex, "misspelt", Some("flexx"));
    elsewhere(&flex, "absent", Some("cuda"));
    let ndarray = pair("burn:ndarray");
    alone(&ndarray);
    mixed(&ndarray);
    modules::moves(&ndarray);
    elsewhere(&ndarray, "named", Some("ndarray"));
    // Without a driver there is nothing to ask, and the suite says so.
    if Device::enumerate(DeviceType::Vulkan).is_empty() {
        return;
    }
    let (wgpu, vulkan) = (pair("burn:wgpu"), pair("burn:vulkan"));
    for accelerated in [&wgpu, &vulkan] {
        alone(accelerated);
        mixed(accelerated);
        modules::moves(accelerated);
        shared(accelerated);
    }
    aliased(&vulkan, &Device::default());
    elsewhere(&wgpu, "named", Some("wgpu"));
    elsewhere(&vulkan, "named", Some("vulkan"));
    elsewhere(&vulkan, "misspelt", Some("vulkann"));
    let absent = || Tensor::<1>::zeros([4], &Device::metal(DeviceKind::DefaultDevice));
    if Device::enumerate(DeviceType::Metal).is_empty() {
        vulkan.say("moving/absent/create-object", vulkan.told(absent, |_| json!({"answer": "accepted"})));
    }
}
