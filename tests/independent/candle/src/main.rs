//! candle's own answers to some of the suite's questions: run it alone, it needs candle and nothing of the suite.
//!
//! Each question is asked in candle's own API and printed as one JSON line: the facts, and the word that they come to.

use std::time::Instant;

use candle_core::{DType, Device, DeviceLocation, Error, IndexOp, Module, Result, Storage, Tensor};
use candle_nn::Linear;
use float8::F8E4M3;
use half::{bf16, f16};
use serde_json::{Value, json};

const CPU: Device = Device::Cpu;
/// Distinct, and neither zero nor one.
const FOUR: [f32; 4] = [2.5, 3.25, 5.75, 7.5];
const PRIMES: [f32; 4] = [2., 3., 5., 7.];
/// Edge of a matrix.
const N: usize = 256;
const COUNT: usize = N * N;

fn say(case: &str, mut facts: Value) {
    facts["target"] = json!("candle:cpu");
    facts["case"] = json!(case);
    println!("{facts}");
}

/// Ask a question: the word and what else is known of the answer, or the name of the error that came instead.
fn ask(case: &str, question: impl FnOnce() -> Result<Value>) {
    say(case, question().unwrap_or_else(|error| json!({"answer": "raises", "error": variant(&error), "healthy": healthy()})));
}

fn variant(error: &Error) -> &'static str {
    match error {
        Error::WithBacktrace { inner, .. } => variant(inner),
        Error::DTypeMismatchBinaryOp { .. } => "DTypeMismatchBinaryOp",
        Error::UnsupportedDTypeForOp(..) => "UnsupportedDTypeForOp",
        Error::NotCompiledWithCudaSupport => "NotCompiledWithCudaSupport",
        other => panic!("another error than any that was seen here: {other}"),
    }
}

fn healthy() -> bool {
    let sum = Tensor::full(3f32, 2, &CPU).and_then(|three| &three + &three).and_then(|sum| sum.to_vec1::<f32>());
    sum.is_ok_and(|sum| sum == [6., 6.])
}

/// Say whether a value is right, and which dtype it has.
fn value(word: &str, right: bool, result: &Tensor) -> Value {
    let word = if right { word } else { "garbage" };
    json!({"answer": word, "dtype": format!("{:?}", result.dtype()).replace("BF", "bfloat").replace('F', "float").replace('I', "int"),
           "value": if right { "right" } else { "wrong" }})
}

fn ramp(start: usize) -> Result<Tensor> {
    Tensor::arange(start as f32, (start + COUNT) as f32, &CPU)?.reshape((N, N))
}

fn close(got: &Tensor, expected: impl Fn(usize) -> f64) -> Result<bool> {
    let got = got.flatten_all()?.to_dtype(DType::F64)?.to_vec1::<f64>()?;
    Ok(got.iter().enumerate().all(|(i, x)| (x - expected(i)).abs() <= 1e-5 * expected(i).abs().max(1.)))
}

/// The address of the storage behind a tensor.
fn storage(tensor: &Tensor) -> usize {
    let (storage, _) = tensor.storage_and_layout();
    let storage: &Storage = &storage;
    std::ptr::from_ref(storage).addr()
}

fn identity(x: &Tensor, y: &Tensor) -> &'static str {
    if x.id() == y.id() {
        "same-object"
    } else if storage(x) == storage(y) {
        "shared-storage"
    } else {
        "copy"
    }
}

fn placement() {
    ask("placement/create/device", || {
        let x = Tensor::new(&[[2f32, 3.], [5., 7.]], &CPU)?;
        Ok(value("works", x.to_vec2::<f32>()? == [[2., 3.], [5., 7.]], &x))
    });
    ask("placement/add/device-device", || {
        let sum = (&ramp(2)? + &ramp(5)?)?;
        Ok(value("works", close(&sum, |i| 7. + 2. * i as f64)?, &sum))
    });
    ask("placement/less/device-device", || {
        let less = ramp(2)?.lt(&Tensor::full((COUNT / 2) as f32, (N, N), &CPU)?)?;
        let right = close(&less, |i| if 2 + i < COUNT / 2 { 1. } else { 0. })?;
        Ok(json!({"answer": if right && less.dtype() == DType::U8 { "works" } else { "garbage" }, "dtype": "uint8"}))
    });
    ask("placement/where-condition/device-device", || {
        let first = Tensor::new(&[2.5f32; N], &CPU)?.lt(&Tensor::arange(0f32, N as f32, &CPU)?)?;
        let chosen = first.reshape((1, N))?.expand((N, N))?.where_cond(&ramp(2)?, &ramp(5)?)?;
        Ok(value("works", close(&chosen, |i| if i % N > 2 { 2. + i as f64 } else { 5. + i as f64 })?, &chosen))
    });
    ask("placement/matmul/device-device", || {
        let product = Tensor::full(2f32, (N, N), &CPU)?.matmul(&Tensor::full(3f32, (N, N), &CPU)?)?;
        Ok(value("works", close(&product, |_| 6. * N as f64)?, &product))
    });
    ask("placement/cat/device-device", || {
        let both = Tensor::cat(&[&ramp(2)?, &ramp(5)?], 0)?;
        Ok(value("works", close(&both, |i| if i < COUNT { 2. + i as f64 } else { 5. + (i - COUNT) as f64 })?, &both))
    });
    let rows = [3i64, 1, 200, 1];
    let row = |i: usize| 2. + (rows[i / N] as usize * N + i % N) as f64;
    let ids = || Tensor::new(&rows, &CPU);
    ask("placement/embedding/device-device", || {
        let found = ramp(2)?.embedding(&ids()?)?;
        Ok(value("works", close(&found, row)?, &found))
    });
    ask("placement/index/device-device", || {
        let found = ramp(2)?.i(&ids()?)?;
        Ok(value("works", close(&found, row)?, &found))
    });
    ask("placement/gather/device-device", || {
        let ids = ids()?.reshape((4, 1))?.broadcast_as((4, N))?.contiguous()?;
        let found = ramp(2)?.gather(&ids, 0)?;
        Ok(value("works", close(&found, row)?, &found))
    });
    ask("placement/copy/device-device", || {
        let x = ramp(2)?;
        x.slice_set(&ramp(5)?, 0, 0)?;
        Ok(value("writes", close(&x, |i| 5. + i as f64)?, &x))
    });
    ask("placement/set-tail/device-device", || {
        let x = ramp(2)?;
        x.slice_set(&ramp(5)?.i(..N - 1)?, 0, 1)?;
        Ok(value("writes", close(&x, |i| if i < N { 2. + i as f64 } else { 5. + (i - N) as f64 })?, &x))
    });
}

fn scalars() {
    ask("scalars/python-float/mul/left", || {
        let product = (2.5 * &Tensor::new(&FOUR, &CPU)?)?;
        let right = product.to_vec1::<f32>()? == FOUR.map(|x| 2.5 * x);
        Ok(value(if product.dtype() == DType::F32 { "keeps-dtype" } else { "other-dtype" }, right, &product))
    });
    ask("scalars/python-float/add/right", || {
        let sum = (&Tensor::new(&FOUR, &CPU)? + 2.5)?;
        let right = sum.to_vec1::<f32>()? == FOUR.map(|x| x + 2.5);
        Ok(value(if sum.dtype() == DType::F32 { "keeps-dtype" } else { "other-dtype" }, right, &sum))
    });
    ask("scalars/python-float-on-int32/mul/right", || {
        let product = (&Tensor::new(&[2i32, 3, 5, 7], &CPU)? * 2.5)?;
        let whole = product.dtype() == DType::I32;
        Ok(json!({"answer": if whole { "truncates" } else { "other-dtype" }, "dtype": "int32", "value": "wrong"}))
    });
    let vector = || Tensor::arange(2f32, (2 + COUNT) as f32, &CPU);
    ask("scalars/zero-dim/device-device/left", || {
        let product = Tensor::new(2.5f32, &CPU)?.broadcast_mul(&vector()?)?;
        Ok(value("works", close(&product, |i| 2.5 * (2. + i as f64))?, &product))
    });
    ask("scalars/zero-dim-float64-on-float32/device-device/left", || {
        let product = Tensor::new(2.5f64, &CPU)?.broadcast_mul(&Tensor::new(&FOUR, &CPU)?)?;
        Ok(value("other-dtype", true, &product))
    });
    ask("scalars/transposed/device-device/left", || {
        let x = Tensor::new(&[[2f32, 7.], [3., 11.], [5., 13.]], &CPU)?.t()?;
        let product = (&x * &Tensor::new(&[[1.5f32, 2.5, 3.5], [4.5, 5.5, 6.5]], &CPU)?)?;
        Ok(value("works", product.to_vec2::<f32>()? == [[3., 7.5, 17.5], [31.5, 60.5, 84.5]], &product))
    });
}

fn moving() {
    let primes = || Tensor::new(&PRIMES, &CPU);
    ask("moving/to-same/object", || {
        let x = primes()?;
        Ok(json!({"answer": identity(&x, &x.to_device(&CPU)?)}))
    });
    ask("moving/to-same/copy", || {
        let x = primes()?;
        Ok(json!({"answer": identity(&x, &x.to_device(&CPU)?.copy()?)}))
    });
    ask("moving/to-same/own-device", || {
        let x = primes()?;
        Ok(json!({"answer": identity(&x, &x.to_device(x.device())?)}))
    });
    for (case, other) in [("same-spelling", Device::Cpu), ("clone", CPU.clone())] {
        ask(&format!("moving/equality/{case}"), || {
            Ok(json!({"answer": if CPU.same_device(&other) && other.same_device(&CPU) { "equal" } else { "unequal" }}))
        });
    }
    ask("moving/ordinal/handle-host", || {
        Ok(json!({"answer": if matches!(CPU.location(), DeviceLocation::Cpu) { "none" } else { "another" }}))
    });
    ask("moving/absent/create-object", || {
        let made = Tensor::zeros(4, DType::F32, &Device::new_cuda(0)?)?;
        Ok(json!({"answer": if made.device().is_cpu() { "falls-back-to-host" } else { "accepted" }}))
    });
    ask("moving/hidden/best-device", || {
        let made = Tensor::zeros(4, DType::F32, &Device::cuda_if_available(0)?)?;
        Ok(value("works", made.device().is_cpu() && made.to_vec1::<f32>()? == [0.; 4], &made))
    });
    ask("moving/buffer-waited/aligned/device", || {
        let mut buffer = PRIMES.to_vec();
        let x = Tensor::from_slice(&buffer, 4, &CPU)?;
        buffer.fill(9.);
        Ok(json!({"answer": if x.to_vec1::<f32>()? == PRIMES { "invisible" } else { "visible" }}))
    });
    ask("moving/read/item/host", || {
        let number = Tensor::new(2.5f32, &CPU)?.to_scalar::<f32>()?;
        Ok(json!({"answer": if (number - 2.5).abs() < 1e-6 { "reads" } else { "garbage" }}))
    });
}

fn dtypes() {
    let rows = [[2., -3.], [5., -7.]];
    let columns = [[4., 6.], [8., -9.]];
    ask("dtypes/bfloat16/matmul", || {
        let of = |rows: [[f64; 2]; 2]| Tensor::new(&rows.map(|row| row.map(bf16::from_f64)), &CPU);
        let product = of(rows)?.matmul(&of(columns)?)?;
        Ok(value("works", true, &product))
    });
    ask("dtypes/float16/matmul", || {
        let of = |rows: [[f64; 2]; 2]| Tensor::new(&rows.map(|row| row.map(f16::from_f64)), &CPU);
        let product = of(rows)?.matmul(&of(columns)?)?;
        let right = product.to_dtype(DType::F32)?.to_vec2::<f32>()? == [[-16., 39.], [-36., 93.]];
        Ok(value("works", right, &product))
    });
    ask("dtypes/int32/matmul", || {
        let product = Tensor::new(&[[2i32, -3], [5, -7]], &CPU)?.matmul(&Tensor::new(&[[4i32, 6], [8, -9]], &CPU)?)?;
        Ok(value("works", true, &product))
    });
    ask("dtypes/float8_e4m3fn/add", || {
        let of = |rows: [[f64; 2]; 2]| Tensor::new(&rows.map(|row| row.map(F8E4M3::from_f64)), &CPU);
        let sum = (&of(rows)? + &of([[3., 5.], [-7., 2.]])?)?;
        let right = sum.to_dtype(DType::F32)?.to_vec2::<f32>()? == [[5., 2.], [-2., -5.]];
        Ok(json!({"answer": if right { "works" } else { "garbage" }, "dtype": "float8_e4m3fn"}))
    });
    ask("dtypes/float4_e2m1fn/create", || {
        let made = Tensor::new(&[[2f32, -3.], [4., -6.]], &CPU)?.to_dtype(DType::F4)?;
        Ok(value("works", true, &made))
    });
    ask("dtypes/literal/float", || {
        let made = Tensor::new(&[2.5, -3.25, 5.0], &CPU)?;
        Ok(json!({"answer": if made.dtype() == DType::F64 { "float64" } else { "other-dtype" }, "dtype": "float64"}))
    });
    ask("dtypes/literal/int", || {
        let made = Tensor::new(&[2, -3, 5], &CPU)?;
        Ok(json!({"answer": if made.dtype() == DType::I32 { "int32" } else { "other-dtype" }, "dtype": "int32"}))
    });
}

fn time() {
    ask("time/loop/matmul", || {
        let left = Tensor::full(2f32 / 512., (512, 512), &CPU)?;
        let mut parts = Vec::new();
        for _ in 0..3 {
            let mut x = Tensor::full(3f32, (512, 512), &CPU)?;
            let started = Instant::now();
            for _ in 0..20 {
                x = left.matmul(&x)?;
            }
            let returned = started.elapsed().as_secs_f64();
            x.device().synchronize()?;
            parts.push(returned / started.elapsed().as_secs_f64());
        }
        Ok(json!({"answer": if parts.iter().all(|part| *part >= 0.8) { "synchronous" } else { "asynchronous" }}))
    });
}

fn modules() {
    ask("modules/compute/device", || {
        let layer = Linear::new(Tensor::new(&[[2f32, 3.]], &CPU)?, None);
        let computed = layer.forward(&Tensor::new(&[[5f32, 7.]], &CPU)?)?;
        Ok(value("works", computed.to_vec2::<f32>()? == [[31.]], &computed))
    });
}

fn main() {
    modules();
    placement();
    scalars();
    moving();
    dtypes();
    time();
}
