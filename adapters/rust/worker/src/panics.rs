//! Panics as facts: caught where a framework is called, and noticed on every other thread.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Mutex;
use std::thread::{self, ThreadId};

/// A panic: where it was, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    /// The name of the thread, or its number where it has none.
    pub thread: String,
    /// File and line.
    pub place: String,
    /// What it said.
    pub text: String,
    /// Whether it arose in the worker's own source, and in no package.
    pub own: bool,
    id: ThreadId,
}

impl Panic {
    /// Return the panic in one line.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{} (at {})", self.text, self.place)
    }
}

static SEEN: Mutex<Vec<Panic>> = Mutex::new(Vec::new());

/// Write every panic down from now on, on whichever thread. One line goes to standard error, which is quoted if the process dies of it.
pub fn watch() {
    panic::set_hook(Box::new(|info| {
        let panic = noted(info);
        eprintln!("thread {} panicked: {}", panic.thread, panic.sentence());
        if let Ok(mut seen) = SEEN.lock() {
            seen.push(panic);
        }
    }));
}

fn noted(info: &PanicHookInfo<'_>) -> Panic {
    let current = thread::current();
    let file = info.location().map_or("", |at| at.file());
    let place = info.location().map_or_else(|| "an unknown place".into(), |at| format!("{}:{}", short(file), at.line()));
    Panic {
        own: !file.is_empty() && !["/registry/src/", "/git/checkouts/", "/library/"].iter().any(|packages| file.contains(packages)),
        thread: current.name().map_or_else(|| format!("{:?}", current.id()), String::from),
        place,
        text: info.payload_as_str().unwrap_or("(no text)").to_owned(),
        id: current.id(),
    }
}

/// Return a source file's place without the directories of the machine that built it: from its crate on.
fn short(file: &str) -> &str {
    let crates = file.find("/registry/src/").and_then(|at| file[at + 14..].find('/').map(|more| at + 15 + more));
    crates.map_or_else(|| file.rfind("/library/").map_or(file, |at| &file[at + 1..]), |at| &file[at..])
}

/// Return the panics that were seen since the last call, and forget them.
#[must_use]
pub fn seen() -> Vec<Panic> {
    std::mem::take(&mut *SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// What came of a call, and the panics of other threads that were seen since the last one.
pub struct Caught<T> {
    /// What it returned, or its panic.
    pub result: Result<T, Panic>,
    /// The panics of other threads.
    pub elsewhere: Vec<Panic>,
}

/// Call a function of the framework.
pub fn catch<T>(call: impl FnOnce() -> T) -> Caught<T> {
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    let mut seen = seen();
    let own = thread::current().id();
    let result = result.map_err(|payload| {
        let last = seen.iter().rposition(|panic| panic.id == own).map(|at| seen.remove(at));
        last.unwrap_or_else(|| Panic {
            // A panic that was thrown again passes no hook.
            thread: thread::current().name().unwrap_or("main").into(),
            place: "an unknown place".into(),
            own: false,
            text: payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_default(),
            id: own,
        })
    });
    Caught { result, elsewhere: seen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_without_the_machine_that_built_it() {
        assert_eq!(short("/home/x/.cargo/registry/src/index.crates.io-1949/cubecl-0.11.3/src/a.rs"), "cubecl-0.11.3/src/a.rs");
        assert_eq!(short("/rustc/59807616e/library/core/src/result.rs"), "library/core/src/result.rs");
        assert_eq!(short("src/main.rs"), "src/main.rs");
    }
}
