//! Tell the worker what it was built with: compiler and optimisation may change an answer.

use std::env;
use std::process::Command;

fn main() {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let version = said.as_deref().and_then(|text| text.split_whitespace().nth(1)).unwrap_or("unknown");
    println!("cargo:rustc-env=WORKER_RUSTC={version}");
    println!("cargo:rustc-env=WORKER_OPT_LEVEL={}", env::var("OPT_LEVEL").unwrap_or_default());
    println!("cargo:rerun-if-changed=build.rs");
}
