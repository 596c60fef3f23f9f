//! Each rule of the protocol's page, with a framework of a few lines.

mod asking;
mod failures;
#[path = "../fake/mod.rs"]
mod fake;
mod messages;
mod programs;
