//! A worker for the fake framework, and the steps that it is asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value as Json, json};
use worker::{Worker, watch};

use crate::fake::Fake;

pub const F32: &str = "float32";

/// Panics are seen by the whole process, so that one test at a time may cause some.
static ALONE: Mutex<()> = Mutex::new(());

/// Keep other tests from panicking meanwhile.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Return a worker that said hello, and its hello.
pub fn greeted() -> (Worker<Fake>, Json) {
    watch();
    let mut worker = Worker::new();
    let hello = worker.answer(&json!({"type": "hello", "id": 1, "framework": "fake", "adapter": null}));
    (worker, hello)
}

/// Run steps, and return the observation.
pub fn run(steps: Json) -> Json {
    let _alone = alone();
    let reply = greeted().0.answer(&json!({"type": "run", "id": 2, "device": "gpu", "program": {"steps": steps}}));
    assert_eq!(reply["type"], "observation", "{reply}");
    assert_eq!(reply["id"], 2);
    reply["observation"].clone()
}

/// Run what is no program, and return the sentence that says so.
pub fn refused(steps: Json) -> String {
    let _alone = alone();
    let reply = greeted().0.answer(&json!({"type": "run", "id": 2, "device": "gpu", "program": {"steps": steps}}));
    assert_eq!(reply["type"], "error", "{reply}");
    reply["error"].as_str().expect("an error says what it is").to_owned()
}

pub fn tensor(id: &str, on: &str) -> Json {
    json!({"id": id, "op": "tensor", "args": [{"data": [[2.0, 3.0]]}, {"dtype": F32}, {"device": on, "spelled": "object"}]})
}

pub fn two(id: &str, op: &str, left: &str, right: &str) -> Json {
    json!({"id": id, "op": op, "args": [{"ref": left}, {"ref": right}], "attempt": true})
}

pub fn look(id: &str, at: &str) -> Json {
    json!({"id": id, "op": "observe", "args": [{"ref": at}], "attempt": true})
}
