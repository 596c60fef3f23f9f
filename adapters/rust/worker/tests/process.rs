//! A worker as a process: its descriptors, and how it ends. The process is this very program, which serves when it is told to.

mod fake;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, Stdio};

use serde_json::{Value as Json, json};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("--serve") => worker::serve::<fake::Fake>(),
        // A list of tests for those who ask for one: there is none.
        Some("--list") => ExitCode::SUCCESS,
        _ => {
            the_protocol_is_alone_on_its_descriptors_and_the_worker_ends_with_its_input();
            a_question_that_takes_twice_its_deadline_ends_the_worker();
            println!("2 tests of a process passed");
            ExitCode::SUCCESS
        }
    }
}

fn started() -> Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .arg("--serve")
        .env("RUST_BACKTRACE", "full")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program starts")
}

fn the_protocol_is_alone_on_its_descriptors_and_the_worker_ends_with_its_input() {
    let mut process = started();
    let mut requests = process.stdin.take().expect("it is piped");
    let mut replies = BufReader::new(process.stdout.take().expect("it is piped"));
    let mut ask = |request: &Json| -> Json {
        writeln!(requests, "{request}").expect("it listens");
        let mut line = String::new();
        replies.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    };
    assert_eq!(ask(&json!({"type": "hello", "id": 1, "framework": "fake", "adapter": null}))["type"], "hello");
    // It prints on standard output, reads standard input and panics: none of that is a reply.
    let steps = json!([
        {"id": "s1", "op": "zeros_uncommitted", "args": [[2]]}, {"id": "s2", "op": "reshape", "args": [{"ref": "s1"}]},
        {"id": "s3", "op": "sub", "args": [{"ref": "s1"}, {"ref": "s1"}]}
    ]);
    let reply = ask(&json!({"type": "run", "id": 2, "device": "gpu", "program": {"steps": steps}}));
    assert_eq!(reply["observation"]["steps"]["s2"]["value"]["value"], 0, "standard input is the null device");
    assert_eq!(reply["observation"]["steps"]["s3"]["error"]["text"], "not on the same device: cpu and cpu");
    drop(requests);
    let output = process.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("chatter on standard output"), "{said}");
    assert!(said.contains("not on the same device") && !said.contains("stack backtrace"), "{said}");
}

fn a_question_that_takes_twice_its_deadline_ends_the_worker() {
    let mut process = started();
    let mut requests = process.stdin.take().expect("it is piped");
    let steps = json!([{"id": "s1", "op": "zeros_uncommitted", "args": [[2]]}, {"id": "s2", "op": "transpose", "args": [{"ref": "s1"}]}]);
    for request in [
        json!({"type": "hello", "id": 1, "framework": "fake", "deadline": 0.4}),
        // What is answered in time leaves nothing behind.
        json!({"type": "warm", "id": 2, "device": "gpu"}),
        json!({"type": "run", "id": 3, "device": "gpu", "deadline": 0.4, "program": {"steps": steps}}),
    ] {
        writeln!(requests, "{request}").expect("it listens");
    }
    let output = process.wait_with_output().expect("it ends");
    assert_eq!(output.status.signal(), Some(14), "the system's alarm");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    drop(requests);
}
