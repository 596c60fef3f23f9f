//! Each rule of the protocol's page, with a framework of a few lines.

mod fake;

use std::sync::{Mutex, MutexGuard, PoisonError};

use fake::Fake;
use serde_json::{Value as Json, json};
use worker::{Worker, answer_all, watch};

const F32: &str = "float32";

/// Panics are seen by the whole process, so that one test at a time may cause some.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn greeted() -> (Worker<Fake>, Json) {
    watch();
    let mut worker = Worker::new();
    let hello = worker.answer(&json!({"type": "hello", "id": 1, "framework": "fake", "adapter": null}));
    (worker, hello)
}

/// Run steps, and return the observation.
fn run(steps: Json) -> Json {
    let _alone = alone();
    let reply = greeted().0.answer(&json!({"type": "run", "id": 2, "device": "gpu", "program": {"steps": steps}}));
    assert_eq!(reply["type"], "observation", "{reply}");
    assert_eq!(reply["id"], 2);
    reply["observation"].clone()
}

fn refused(steps: Json) -> String {
    let _alone = alone();
    let reply = greeted().0.answer(&json!({"type": "run", "id": 2, "device": "gpu", "program": {"steps": steps}}));
    assert_eq!(reply["type"], "error", "{reply}");
    reply["error"].as_str().expect("an error says what it is").to_owned()
}

fn tensor(id: &str, on: &str) -> Json {
    json!({"id": id, "op": "tensor", "args": [{"data": [[2.0, 3.0]]}, {"dtype": F32}, {"device": on, "spelled": "object"}]})
}

fn two(id: &str, op: &str, left: &str, right: &str) -> Json {
    json!({"id": id, "op": op, "args": [{"ref": left}, {"ref": right}], "attempt": true})
}

fn look(id: &str, at: &str) -> Json {
    json!({"id": id, "op": "observe", "args": [{"ref": at}], "attempt": true})
}

#[test]
fn hello_says_what_is_here_and_what_is_not() {
    let _alone = alone();
    let (_, hello) = greeted();
    assert_eq!(hello["type"], "hello");
    assert_eq!((&hello["id"], &hello["protocol"], &hello["version"]), (&json!(1), &json!(1), &json!("1.0")));
    assert_eq!(hello["devices"]["tpu"], json!({"available": false, "why": "no TPU here"}));
    let roles = &hello["devices"]["gpu"]["roles"];
    assert_eq!(roles["host"], json!({"name": "cpu", "expression": "Cpu", "evidence": "measured"}));
    assert_eq!(roles["accelerator"]["mention"], "the gpu");
    assert_eq!(hello["devices"]["gpu"]["spelled"], json!({"absent/object": "Tpu::new()"}));
    assert_eq!(hello["devices"]["gpu"]["untimed"], "");
    assert!(hello["environment"]["PATH"].is_string() && hello["environment"].get("FAKE_IS_NOT_SET").is_none());
    assert_eq!(hello["environments"], json!({"no-accelerator": {"FAKE_VISIBLE": ""}}));
    assert!(hello["operations"].as_array().expect("a list").contains(&json!("add")));
    assert!(hello["build"]["rustc"].as_str().expect("a version").starts_with("1."));
}

#[test]
fn what_is_shown_is_what_runs() {
    let _alone = alone();
    let (_, hello) = greeted();
    let phrases = &hello["phrases"];
    assert_eq!(phrases["add"], "fake.add(&{0}, &{1})?");
    assert_eq!(phrases["add/1"], "{0}.plus({1})");
    assert_eq!(phrases["float32"], "F32");
}

#[test]
fn a_framework_that_is_another_one_is_unavailable() {
    let _alone = alone();
    let reply = Worker::<Fake>::new().answer(&json!({"type": "hello", "id": 1, "framework": "torch"}));
    assert_eq!((&reply["type"], &reply["why"]), (&json!("unavailable"), &json!("this worker is for fake, not for torch")));
}

#[test]
fn what_is_no_request_is_an_error_with_its_id() {
    let _alone = alone();
    let mut fresh = Worker::<Fake>::new();
    let early = fresh.answer(&json!({"type": "run", "id": 7, "device": "gpu", "program": {"steps": []}}));
    assert_eq!(early, json!({"type": "error", "id": 7, "error": "asked before hello"}));
    let (mut worker, _) = greeted();
    assert_eq!(worker.answer(&json!({"type": "dance", "id": 3}))["error"], "unknown message type \"dance\"");
    assert_eq!(worker.answer(&json!({"type": "run"}))["id"], Json::Null);
    let elsewhere = worker.answer(&json!({"type": "run", "id": 4, "device": "tpu", "program": {"steps": []}}));
    assert_eq!(elsewhere["error"], "no device kind \"tpu\" here");
    assert_eq!(worker.answer(&json!({"type": "warm", "id": 5, "device": "gpu"})), json!({"type": "warm", "id": 5}));
}

#[test]
fn a_device_that_is_hidden_is_asked_about_by_the_roles_that_it_has_elsewhere() {
    let _alone = alone();
    let (mut worker, _) = greeted();
    let roles = json!({"host": {"name": "cpu", "expression": "Cpu", "evidence": "measured"}});
    let reply =
        worker.answer(&json!({"type": "run", "id": 4, "device": "tpu", "program": {"steps": [tensor("s1", "device")]}, "roles": roles}));
    assert_eq!(reply["observation"]["steps"]["s1"]["value"]["role"], "host");
}

#[test]
fn lines_are_answered_in_order_until_bye_whatever_they_are() {
    let _alone = alone();
    let long = format!("{{\"type\": \"hello\", \"id\": 2, \"pad\": \"{}\"}}\n", "x".repeat(17 << 20));
    let requests = [
        "nonsense\n",
        &long,
        "[]\n",
        "\u{0}\n",
        "{\"type\":\"dance\",\"id\":5}\n",
        "{\"type\":\"bye\",\"id\":0}\n",
        "{\"type\":\"dance\",\"id\":6}\n",
    ];
    let mut said = Vec::new();
    answer_all(&mut Worker::<Fake>::new(), requests.concat().as_bytes(), &mut said).expect("a vector takes everything");
    let replies: Vec<Json> =
        String::from_utf8(said).expect("JSON is UTF-8").lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(replies.len(), 5, "bye ends it");
    assert!(replies.iter().all(|reply| reply["type"] == "error"));
    assert!(replies[1]["error"].as_str().expect("a sentence").contains("more than 16777216 bytes"));
    assert_eq!(replies[4]["id"], 5);
}

#[test]
fn a_step_leaves_facts_about_its_value_and_nothing_is_read_unasked() {
    let observation = run(json!([tensor("s1", "accelerator"), two("s2", "add", "s1", "s1"), look("s3", "s2")]));
    let steps = &observation["steps"];
    assert_eq!(steps["s1"]["value"], json!({"kind": "tensor", "device": "gpu", "role": "accelerator", "dtype": F32, "shape": [1, 2]}));
    assert!(steps["s2"]["value"].get("elements").is_none());
    assert_eq!(steps["s3"]["value"]["elements"], json!([4.0, 6.0]));
    assert!(observation.get("drain").is_none() && observation.get("poisoned").is_none());
}

#[test]
fn large_values_are_read_at_spread_positions() {
    let full = json!({"id": "s1", "op": "full", "args": [[256, 256], 3.0, {"dtype": F32}, {"device": "device"}]});
    let value = &run(json!([full, look("s2", "s1")]))["steps"]["s2"]["value"];
    let n: usize = 256 * 256;
    let mut expected: Vec<usize> = (1..15).map(|i: usize| (7919 * i * i + 4099 * i) % n).chain([0, n - 1]).collect();
    expected.sort_unstable();
    assert_eq!(value["at"], json!(expected));
    assert_eq!(value["elements"], json!(vec![3.0; expected.len()]));
}

#[test]
fn an_attempt_may_fail_and_what_depends_on_it_is_skipped() {
    let steps = run(json!([
        tensor("s1", "host"), tensor("s2", "accelerator"), two("s3", "add", "s1", "s2"), two("s4", "add", "s3", "s1"), two("s5", "add", "s4", "s1"),
        {"id": "s6", "op": "observe", "args": [{"ref": "s1"}], "attempt": true, "when": ["s3"]},
        {"id": "s7", "op": "observe", "args": [{"ref": "s1"}], "attempt": true, "when": ["s1"]},
        two("s8", "add", "s1", "s1")
    ]))["steps"]
        .clone();
    let error = json!({"type": "DeviceMismatch", "module": "fake", "bases": ["Error"], "text": "device mismatch in add: cpu and gpu"});
    assert_eq!(steps["s3"], json!({"error": error}));
    assert_eq!((&steps["s4"], &steps["s5"]), (&json!({"skipped": "s3"}), &json!({"skipped": "s4"})));
    assert_eq!(steps["s6"]["value"]["elements"], json!([2.0, 3.0]), "a probe runs after a refusal");
    assert!(steps.get("s7").is_none(), "and not without one");
    assert!(steps["s8"]["value"].is_object());
}

#[test]
fn an_error_that_was_not_expected_ends_the_program() {
    let mut mixed = two("s3", "add", "s1", "s2");
    mixed.as_object_mut().expect("a step").remove("attempt");
    let steps = run(json!([tensor("s1", "host"), tensor("s2", "accelerator"), mixed, look("s4", "s1")]))["steps"].clone();
    assert!(steps["s3"]["error"].is_object() && steps.get("s4").is_none());
}

#[test]
fn what_is_not_there_is_not_offered_and_ends_the_program() {
    let steps = run(json!([tensor("s1", "host"), two("s2", "gather", "s1", "s1"), look("s3", "s1")]))["steps"].clone();
    assert_eq!(steps["s2"], json!({"not_offered": "fake offers no gather"}));
    assert!(steps.get("s3").is_none());
    let peer = run(json!([tensor("s1", "peer")]))["steps"].clone();
    assert_eq!(peer["s1"], json!({"not_offered": "no peer device here"}));
    let truth =
        run(json!([tensor("s1", "host"), {"id": "s2", "op": "add", "args": [{"ref": "s1"}, true], "attempt": true}]))["steps"].clone();
    assert_eq!(truth["s2"], json!({"not_offered": "fake offers no add of a tensor and a truth"}));
}

#[test]
fn numbers_lists_and_devices_are_values_too() {
    let steps = run(json!([
        tensor("s1", "host"),
        {"id": "s2", "op": "add", "args": [{"ref": "s1"}, 0.5]}, {"id": "s3", "op": "item", "args": [{"ref": "s2"}]}, look("s4", "s3"),
        {"id": "s5", "op": "to_list", "args": [{"ref": "s2"}]}, look("s6", "s5"),
        {"id": "s7", "op": "name", "args": [{"device": "accelerator"}]}, {"id": "s8", "op": "name", "args": [{"device": "accelerator"}]},
        {"id": "s9", "op": "compare", "args": [{"ref": "s7"}, {"ref": "s8"}]}, {"id": "s10", "op": "compare", "args": [{"ref": "s7"}, {"ref": "s7"}]},
    ]))["steps"]
        .clone();
    assert_eq!(steps["s4"]["value"], json!({"kind": "python", "type": "float", "value": 2.5}));
    assert_eq!(steps["s6"]["value"]["elements"], json!([2.5, 3.5]));
    assert_eq!(
        steps["s9"]["value"],
        json!({"kind": "comparison", "equal": false, "mirrored": false, "hash": null, "texts": ["gpu", "gpu"]})
    );
    assert_eq!(steps["s10"]["value"]["equal"], true);
}

#[test]
fn a_device_that_refuses_to_be_named_is_an_error_of_the_step_that_uses_it() {
    let observation = run(json!([
        {"id": "s1", "op": "name", "args": [{"device": "absent"}], "attempt": true},
        {"id": "s2", "op": "zeros_uncommitted", "args": [[2]]},
        {"id": "s3", "op": "to", "args": [{"ref": "s2"}, {"device": "misspelt"}], "attempt": true}
    ]));
    let steps = &observation["steps"];
    assert_eq!(observation["spelled"], json!({"absent/object": "Tpu::new()"}), "as it was written, for those who look for it in a text");
    assert_eq!(steps["s1"]["error"]["text"], "no device is absent");
    assert_eq!(steps["s3"]["error"]["type"], "NoSuchDevice");
}

#[test]
fn identity_tells_objects_and_storage_apart() {
    let steps = run(json!([
        tensor("s1", "host"), {"id": "s2", "op": "to", "args": [{"ref": "s1"}, {"device": "host"}]}, {"id": "s3", "op": "to", "args": [{"ref": "s1"}, {"device": "accelerator"}]},
        two("s4", "same", "s1", "s2"), two("s5", "same", "s1", "s3"), {"id": "s6", "op": "item", "args": [{"ref": "s1"}]}, two("s7", "same", "s1", "s6")
    ]))["steps"]
        .clone();
    assert_eq!(steps["s4"]["value"], json!({"kind": "identity", "object": true, "storage": true}));
    assert_eq!(steps["s5"]["value"], json!({"kind": "identity", "object": false, "storage": false}));
    assert_eq!(steps["s7"]["value"], json!({"kind": "identity", "object": false, "storage": null}));
}

#[test]
fn a_scope_holds_for_its_body_alone_and_ends_with_what_ends_the_program() {
    let zeros = |id: &str| json!({"id": id, "op": "zeros_uncommitted", "args": [[2]], "attempt": true});
    let inside = |body: Json| json!({"id": "s1", "scope": "default-device", "args": [{"device": "accelerator"}], "body": body});
    let steps = run(json!([inside(json!([zeros("s2")])), zeros("s3")]))["steps"].clone();
    assert_eq!((&steps["s2"]["value"]["device"], &steps["s3"]["value"]["device"]), (&json!("gpu"), &json!("cpu")));
    assert_eq!(steps["s1"], json!({"value": {"kind": "none"}}));
    let stopped = run(json!([inside(json!([{"id": "s2", "op": "gather"}, zeros("s3")])), zeros("s4")]))["steps"].clone();
    assert_eq!(stopped["s1"], json!({"not_offered": "fake offers no gather"}));
    assert!(stopped.get("s3").is_none() && stopped.get("s4").is_none());
    let unknown = run(json!([{"id": "s1", "scope": "inference", "args": [], "body": [zeros("s2")]}]))["steps"].clone();
    assert_eq!(unknown, json!({"s1": {"not_offered": "fake has no inference scope"}}));
}

#[test]
fn host_memory_is_made_written_and_dropped() {
    let steps = run(json!([
        {"id": "s1", "op": "buffer", "args": [{"data": [2.0, 3.0]}, "misaligned"]}, {"id": "s2", "op": "write_buffer", "args": [{"ref": "s1"}, 9.0]},
        {"id": "s3", "op": "drop", "args": [{"ref": "s1"}]}, {"id": "s4", "op": "buffer", "kw": {"values": {"data": [2]}, "alignment": "aligned", "dtype": "complex128"}}
    ]))["steps"]
        .clone();
    assert_eq!(steps["s1"]["value"]["kind"], "handle");
    assert_eq!(steps["s2"], steps["s3"]);
    assert_eq!(steps["s4"], json!({"not_offered": "Rust has no plain numbers of complex128"}));
}

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
    assert!(text.starts_with("thread runner panicked: the device is lost (at tests/fake/mod.rs:"), "{text}");
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

#[test]
fn a_loop_is_timed_with_the_fields_that_python_gives() {
    let question = json!({
        "op": "matmul", "device": {"device": "device"}, "dtype": {"dtype": F32}, "chain": 3, "rounds": 2, "end": "read", "at_most": 0.5, "at_least": 0.8, "weight": 5
    });
    let value = run(json!([{"id": "s1", "op": "time", "kw": question, "attempt": true}]))["steps"]["s1"]["value"].clone();
    assert_eq!((&value["kind"], &value["chain"], &value["value"]), (&json!("times"), &json!(3), &json!(24.0)));
    let rounds = value["rounds"].as_array().expect("a list");
    assert_eq!(rounds.len(), 3);
    for round in rounds {
        let [returned, read, all] = ["returned", "read", "synchronised"].map(|key| round[key].as_f64().expect("seconds"));
        assert!(0.0 < returned && returned <= read && read <= all);
    }
    assert_eq!(value["calls"].as_array().expect("a list").len(), 5);
    for key in ["size", "tries", "work", "idle", "cold"] {
        assert!(value[key].is_number(), "{key}");
    }
}

#[test]
fn with_no_rounds_single_calls_are_timed_at_the_smallest_size() {
    let question = json!({
        "op": "matmul", "device": {"device": "device"}, "dtype": {"dtype": F32}, "chain": 3, "rounds": 0, "end": "barrier", "at_most": 0.5, "at_least": 0.8, "weight": 5
    });
    let value = run(json!([{"id": "s1", "op": "time", "kw": question, "attempt": true}]))["steps"]["s1"]["value"].clone();
    assert_eq!((&value["size"], &value["chain"], &value["value"]), (&json!(64), &json!(1), &json!(6.0)));
    assert_eq!(value["calls"].as_array().expect("a list").len(), 5);
    assert!(value.get("rounds").is_none());
}

#[test]
fn a_program_that_is_none_is_refused_with_a_sentence() {
    assert_eq!(refused(json!([{"id": "s1"}])), "step s1 has neither or both of op and scope");
    assert_eq!(refused(json!([look("s2", "s1")])), "\"s1\" has no value");
    assert!(refused(json!([{"op": "add"}])).starts_with("a step without an id"));
    assert_eq!(
        refused(json!([{"id": "s1", "op": "tensor", "args": [{"data": [[1], [2, 3]]}]}])),
        "lists of different lengths are no tensor"
    );
    assert_eq!(refused(json!([{"id": "s1", "op": "observe", "args": []}])), "s1 gives observe what it doesn't take");
    assert_eq!(refused(json!({})), "a program without steps");
}

#[test]
fn no_program_changes_the_next() {
    let _alone = alone();
    let (mut worker, _) = greeted();
    let mut ask = |steps: Json| worker.answer(&json!({"type": "run", "id": 2, "device": "gpu", "program": {"steps": steps}}));
    ask(json!([tensor("s1", "host"), two("s2", "sub", "s1", "s1")]));
    assert_eq!(ask(json!([look("s2", "s1")]))["error"], "\"s1\" has no value");
    assert_eq!(ask(json!([tensor("s1", "host"), look("s2", "s1")]))["observation"]["steps"]["s2"]["value"]["elements"], json!([2.0, 3.0]));
}
