//! Requests and replies, whatever is in them.

use serde_json::{Value as Json, json};
use worker::{Worker, answer_all};

use crate::asking::{alone, greeted, tensor};
use crate::fake::Fake;

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
