//! What every worker in Rust is made of: the protocol of `adapters/PROTOCOL.md`, the interpreter of programs, the clock of timed
//! loops, and panics as facts.
//!
//! A worker for a framework is a type that implements [`Framework`], a table of its operations (see [`operations!`]), and
//! `fn main() -> ExitCode { worker::serve::<MyFramework>() }`.

mod buffer;
mod framework;
mod interpret;
mod panics;
mod serve;
mod table;
mod timing;
mod values;

pub use buffer::{HostBuffer, View};
pub use framework::{
    Arg, Call, Comparison, ErrorFact, Facts, Fault, Framework, FromArg, Identity, IntoValue, Kind, Operation, Place, Role, Roles, Value,
    phrase,
};
pub use panics::{Caught, Panic, catch, watch};
pub use serve::{Worker, answer_all, locked, serve};
pub use values::{Data, Number};
