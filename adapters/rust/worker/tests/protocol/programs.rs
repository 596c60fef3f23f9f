//! Programs, step by step, and loops that are timed.

use serde_json::{Value as Json, json};

use crate::asking::{F32, alone, greeted, look, refused, run, tensor, two};

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
fn a_value_on_a_device_without_a_role_says_that_it_is_simulated_and_of_a_role_the_role_says_it() {
    let steps = run(json!([
        tensor("s1", "accelerator"), {"id": "s2", "op": "zeros_like", "args": [{"ref": "s1"}]}, {"id": "s3", "op": "observe", "args": [{"ref": "s2"}]}
    ]))["steps"]
        .clone();
    assert_eq!((&steps["s1"]["value"]["role"], steps["s1"]["value"].get("evidence")), (&json!("accelerator"), None));
    for step in ["s2", "s3"] {
        assert_eq!((&steps[step]["value"]["role"], &steps[step]["value"]["evidence"]), (&json!(null), &json!("simulated")));
    }
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
fn what_only_the_framework_s_operations_know_is_a_handle() {
    let steps = run(json!([
        tensor("s1", "host"), {"id": "s2", "op": "linear", "args": [{"ref": "s1"}]}, {"id": "s3", "op": "linear", "args": [{"ref": "s1"}]},
        {"id": "s4", "op": "move_module", "args": [{"ref": "s2"}, {"device": "host"}]}, {"id": "s5", "op": "member", "args": [{"ref": "s4"}]},
        two("s6", "same", "s2", "s4"), two("s7", "same", "s2", "s3"), look("s8", "s2"), two("s9", "add", "s2", "s1")
    ]))["steps"]
        .clone();
    assert_eq!(steps["s2"]["value"], json!({"kind": "handle", "text": "a module"}));
    assert_eq!(steps["s5"]["value"]["kind"], "tensor");
    assert_eq!((&steps["s6"]["value"]["object"], &steps["s7"]["value"]["object"]), (&json!(true), &json!(false)));
    assert_eq!(steps["s8"], steps["s2"]);
    assert_eq!(steps["s9"], json!({"not_offered": "fake offers no add of a module or a loader and a tensor"}));
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
fn a_loop_of_moves_is_timed_from_another_device() {
    let question = json!({
        "op": "to_async", "device": {"device": "accelerator"}, "source": {"device": "host"}, "memory": "device", "dtype": {"dtype": F32}, "chain": 3,
        "rounds": 1, "end": "barrier", "at_most": 0.5, "at_least": 0.8, "weight": 5
    });
    let asked = |question: &Json| run(json!([{"id": "s1", "op": "time", "kw": question, "attempt": true}]))["steps"]["s1"].clone();
    let value = asked(&question)["value"].clone();
    assert_eq!((&value["op"], &value["value"]), (&json!("to_async"), &json!(0.5)));
    assert_eq!(value["rounds"].as_array().expect("a list").len(), 2);
    let mut pinned = question.clone();
    pinned["memory"] = "pinned-host".into();
    assert_eq!(asked(&pinned), json!({"not_offered": "fake offers no to_memory"}));
    let mut nowhere = question;
    nowhere["source"] = Json::Null;
    assert_eq!(refused(json!([{"id": "s1", "op": "time", "kw": nowhere}])), "a value is moved from a device");
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
