//! What every worker in Rust is made of: the protocol of `adapters/PROTOCOL.md`, the interpreter of programs, the clock of timed
//! loops, and panics as facts.
//!
//! A worker for a framework is a type that implements [`Framework`], a table of its operations (see [`operations!`]), and
//! `fn main() -> ExitCode { worker::serve::<MyFramework>() }`.

mod arguments;
mod buffer;
mod conversions;
mod framework;
mod interpret;
mod looking;
mod panics;
mod serve;
mod table;
mod timing;
mod values;

pub use buffer::{HostBuffer, View};
pub use conversions::{FromArg, IntoValue};
pub use framework::{Arg, Comparison, ErrorFact, Facts, Fault, Framework, Identity, Kind, Opaque, Place, Role, Roles, Value};
pub use panics::{Caught, Panic, catch, watch};
pub use serve::{Worker, answer_all, locked, serve};
pub use table::{Call, Operation, phrase};
pub use values::{Data, Number};
