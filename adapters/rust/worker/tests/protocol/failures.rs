//! Errors and panics: of the step that asked, of another thread, too late.

use serde_json::json;

use crate::asking::{alone, greeted, look, run, tensor, two};

#[test]
fn a_panic_is_an_error_and_the_program_goes_on() {
    let observation = run(json!([tensor("s1", "host"), tensor("s2", "accelerator"), two("s3", "sub", "s1", "s2"), look("s4", "s1")]));
    let steps = &observation["steps"];
    assert_eq!(
        steps["s3"]["error"],
        json!({"type": "panic", "module": "fake", "bases": [], "text": "not on the same device: cpu and gpu"})
    );
    assert_eq!(steps["s4"]["value"]["elements"], json!([2.0, 3.0]));
    assert!(observation.get("poisoned").is_none(), "a panic that was caught harms nothing");
}

#[test]
fn a_panic_of_another_thread_belongs_to_the_step_during_which_it_appeared() {
    let observation = run(json!([tensor("s1", "host"), two("s2", "mul", "s1", "s1"), look("s3", "s1")]));
    let warnings = &observation["steps"]["s2"]["warnings"];
    assert_eq!(warnings[0]["category"], "panic");
    let text = warnings[0]["text"].as_str().expect("a warning has a text");
    assert!(text.starts_with("thread runner panicked: the device is lost (at tests/") && text.contains("fake/mod.rs:"), "{text}");
    assert!(observation["steps"]["s3"].get("warnings").is_none() && observation["steps"]["s1"].get("warnings").is_none());
    assert_eq!(observation["poisoned"], true, "the thread is gone");
}

#[test]
fn a_late_error_surfaces_where_it_is_waited_for() {
    let first = [tensor("s1", "host"), two("s2", "div", "s1", "s1")];
    let waited = run(json!([&first[0], &first[1], {"id": "s3", "op": "barrier", "attempt": true}]));
    assert!(waited["steps"]["s2"].get("error").is_none());
    assert_eq!(waited["steps"]["s3"]["error"]["type"], "Late");
    assert!(waited.get("drain").is_none());
    let looked = run(json!([&first[0], &first[1], look("s3", "s1")]));
    assert_eq!(looked["steps"]["s3"]["error"]["type"], "Late");
    let drained = run(json!(first));
    assert_eq!(drained["drain"]["error"]["type"], "Late");
    assert_eq!(drained["poisoned"], true, "as the framework says of this error");
}

#[test]
fn a_late_panic_of_another_thread_is_what_drain_says() {
    let observation = run(json!([tensor("s1", "host"), {"id": "s2", "op": "sum", "args": [{"ref": "s1"}]}]));
    assert!(observation["steps"]["s2"].get("warnings").is_none());
    assert_eq!(observation["drain"]["error"]["text"], "the device is lost");
    assert_eq!(observation["poisoned"], true);
}

#[test]
fn a_panic_after_the_last_program_is_blamed_on_no_step() {
    let _alone = alone();
    let (mut worker, _) = greeted();
    let _ = std::thread::Builder::new().name("runner".into()).spawn(|| panic!("too late")).map(std::thread::JoinHandle::join);
    let mut ask = || worker.answer(&json!({"type": "run", "id": 2, "device": "gpu", "program": {"steps": [tensor("s1", "host")]}}));
    let why = ask()["error"].as_str().expect("an error").to_owned();
    assert!(why.starts_with("thread runner panicked after the last program had ended: too late"), "{why}");
    assert!(ask()["observation"].is_object());
}

#[test]
fn a_value_that_cannot_be_described_is_the_workers_own_failure() {
    let observation = run(json!([tensor("s1", "host"), two("s2", "stack", "s1", "s1"), look("s3", "s1")]));
    let why = observation["steps"]["s2"]["adapter_failed"].as_str().expect("the worker is wrong");
    assert!(why.contains("nothing can be said of this one"), "{why}");
    assert!(observation["steps"].get("s3").is_none());
}

#[test]
fn an_error_that_comes_up_where_a_value_is_described_is_the_framework_s() {
    let observation = run(json!([tensor("s1", "host"), two("s2", "cat", "s1", "s1"), look("s3", "s1")]));
    assert_eq!(observation["steps"]["s2"]["error"]["type"], "panic", "{observation}");
    assert!(observation["steps"]["s3"]["value"].is_object());
}
