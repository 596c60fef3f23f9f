//! The worker's main loop: JSON lines over standard input and output.
//!
//! The protocol speaks through private copies of the descriptors; in their places stand the null device and standard error, so that
//! whatever the framework prints can't break it. The worker ends when its input does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::ExitCode;
use std::rc::Rc;

use serde_json::{Map, Value as Json, json};

use crate::framework::{Framework, Kind, Place, Role, Roles};
use crate::interpret::{Interpreter, Malformed};
use crate::panics;
use crate::table::Table;

const PROTOCOL: u32 = 1;
/// Longest request that is read, in bytes.
const LONGEST: u64 = 16 << 20;
/// So many deadlines a question may take before the worker ends by itself.
const OVERDUE: f64 = 2.0;

/// Take the protocol's descriptors and answer requests until `bye` or the end of input: a worker's whole `main`.
#[must_use]
pub fn serve<F: Framework>() -> ExitCode {
    let (incoming, outgoing) = match private() {
        Ok(both) => both,
        Err(error) => {
            eprintln!("the worker's own descriptors can't be kept: {error}");
            return ExitCode::from(2);
        }
    };
    quiet();
    panics::watch();
    let mut worker = Worker::<F>::new();
    let _ = answer_all(&mut worker, BufReader::new(incoming), outgoing);
    // A framework's own teardown may hang or crash; nothing is left to be said.
    std::process::exit(0)
}

/// Keep backtraces out of what errors say: frameworks append them to their texts.
#[allow(unsafe_code, reason = "no other thread has been started yet that could read the environment")]
fn quiet() {
    for name in ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"] {
        unsafe { std::env::set_var(name, "0") };
    }
}

#[allow(unsafe_code, reason = "the standard library has no dup2")]
fn private() -> io::Result<(File, File)> {
    unsafe extern "C" {
        safe fn dup2(from: i32, to: i32) -> i32;
    }
    let incoming = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let outgoing = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    if dup2(nothing.as_raw_fd(), 0) < 0 || dup2(2, 1) < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((incoming, outgoing))
}

/// Let the system end this process in so many seconds, whatever it does then; 0 takes that back. Who asked would end it, but may
/// be gone, or on another machine.
#[allow(unsafe_code, reason = "the standard library has no alarm")]
fn end_in(seconds: f64) {
    unsafe extern "C" {
        safe fn alarm(seconds: u32) -> u32;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to a whole number saturates")]
    alarm(seconds.ceil() as u32);
}

/// Answer lines until the end.
///
/// # Errors
/// When the suite doesn't listen any more.
pub fn answer_all<F: Framework>(worker: &mut Worker<F>, mut incoming: impl BufRead, mut outgoing: impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if incoming.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let reply = if line.len() as u64 > LONGEST && line.last() != Some(&b'\n') {
            skip_line(&mut incoming)?;
            refusal(&Json::Null, &format!("a request of more than {LONGEST} bytes"))
        } else {
            match serde_json::from_slice::<Json>(&line) {
                Ok(request) if request["type"] == "bye" => return Ok(()),
                Ok(request) => {
                    end_in(request["deadline"].as_f64().map_or(0.0, |seconds| OVERDUE * seconds));
                    let reply = worker.answer(&request);
                    end_in(0.0);
                    reply
                }
                Err(error) => refusal(&Json::Null, &format!("a request that is no JSON: {error}")),
            }
        };
        outgoing.write_all(format!("{reply}\n").as_bytes())?;
        outgoing.flush()?;
    }
}

fn skip_line(incoming: &mut impl BufRead) -> io::Result<()> {
    loop {
        let (count, end) = {
            let there = incoming.fill_buf()?;
            let end = there.iter().position(|byte| *byte == b'\n');
            (end.map_or(there.len(), |at| at + 1), end.is_some() || there.is_empty())
        };
        incoming.consume(count);
        if end {
            return Ok(());
        }
    }
}

fn refusal(id: &Json, why: &str) -> Json {
    json!({"type": "error", "id": id, "error": why})
}

/// One worker: what it said hello with, and an interpreter for each device kind that was asked about.
pub struct Worker<F: Framework> {
    table: Rc<Table<F>>,
    kinds: BTreeMap<String, Kind>,
    interpreters: BTreeMap<String, Interpreter<F>>,
    greeted: bool,
}

impl<F: Framework> Worker<F> {
    /// Start with nothing looked at.
    #[must_use]
    pub fn new() -> Self {
        Self { table: Rc::new(Table::new()), kinds: BTreeMap::new(), interpreters: BTreeMap::new(), greeted: false }
    }

    /// Return the reply to a request.
    pub fn answer(&mut self, request: &Json) -> Json {
        let id = &request["id"];
        if !id.is_u64() {
            return refusal(&Json::Null, "a request without a number as its id");
        }
        let outcome = match request["type"].as_str() {
            Some("hello") => self.hello(request),
            Some("run" | "warm") if !self.greeted => Err("asked before hello".into()),
            Some("run") => self.run(request).map(|observation| json!({"type": "observation", "observation": observation})),
            Some("warm") => self.warm(request).map(|()| json!({"type": "warm"})),
            _ => Err(format!("unknown message type {}", request["type"])),
        };
        match outcome {
            Ok(mut reply) => {
                reply["id"] = id.clone();
                reply
            }
            Err(why) => refusal(id, &why),
        }
    }

    fn hello(&mut self, request: &Json) -> Result<Json, String> {
        let framework = request["framework"].as_str().ok_or("hello names no framework")?;
        if framework != F::NAME {
            return Ok(
                json!({"type": "unavailable", "missing": false, "why": format!("this worker is for {}, not for {framework}", F::NAME)}),
            );
        }
        // Looking for devices may start drivers, and those may panic.
        let found = panics::catch(|| (F::identity(), F::kinds())).result;
        let (identity, kinds) = match found {
            Ok(found) => found,
            Err(panic) => return Ok(json!({"type": "unavailable", "missing": false, "why": panic.sentence()})),
        };
        self.kinds = kinds.into_iter().collect();
        self.greeted = true;
        let names: Vec<String> = self.kinds.keys().cloned().collect();
        let devices: Map<String, Json> = names.into_iter().map(|kind| (kind.clone(), self.device_kind(&kind))).collect();
        let environment: Map<String, Json> =
            F::VARIABLES.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?.to_string_lossy().into()))).collect();
        let mut build = identity.build;
        build.extend([
            ("rustc".into(), env!("WORKER_RUSTC").into()),
            ("opt-level".into(), env!("WORKER_OPT_LEVEL").into()),
            ("debug assertions".into(), cfg!(debug_assertions).to_string()),
        ]);
        Ok(json!({
            "type": "hello", "protocol": PROTOCOL, "framework": F::NAME, "version": identity.version, "build": build,
            "machine": machine(), "environment": environment, "environments": environments(F::environments()),
            "operations": self.table.names().collect::<Vec<_>>(), "dtypes": F::dtypes(), "devices": devices, "phrases": self.table.phrases(),
        }))
    }

    fn device_kind(&mut self, kind: &str) -> Json {
        let roles = match &self.kinds[kind] {
            Ok(roles) => roles.clone(),
            Err(why) => return json!({"available": false, "why": why}),
        };
        let said: Map<String, Json> = roles.iter().map(|(role, facts)| (role.clone(), role_json(facts))).collect();
        let (mut spelled, mut untimed) = (Map::new(), None);
        if let Ok(own) = self.interpreter(kind, None) {
            for name in ["absent", "out-of-range", "misspelt"] {
                let text = own.framework().missing(&Place { name: name.into(), spelled: "object".into() });
                spelled.extend(text.map(|text| (format!("{name}/object"), text.into())));
            }
            untimed = own.framework().untimed();
        }
        let environments = environments(F::kind_environments(kind));
        let untimed = untimed.unwrap_or_default();
        json!({"available": true, "roles": said, "spelled": spelled, "untimed": untimed, "environments": environments})
    }

    fn run(&mut self, request: &Json) -> Result<Json, String> {
        let kind = request["device"].as_str().ok_or("run names no device")?;
        let given = request.get("roles").filter(|roles| !roles.is_null()).map(roles_of).transpose()?;
        if let Some(late) = panics::seen().first() {
            // It belongs to no step of this program, and whatever that thread did is not done any more.
            return Err(format!("thread {} panicked after the last program had ended: {}", late.thread, late.sentence()));
        }
        self.interpreter(kind, given)?.run(&request["program"]).map_err(|Malformed(why)| why)
    }

    fn warm(&mut self, request: &Json) -> Result<(), String> {
        let kind = request["device"].as_str().ok_or("warm names no device")?;
        let own = self.interpreter(kind, None)?;
        // What can't be done shows in the questions.
        let _ = panics::catch(|| own.framework().warm());
        Ok(())
    }

    /// Return the interpreter of a device kind, by the roles that it has elsewhere where this process's environment hides it.
    fn interpreter(&mut self, kind: &str, given: Option<Roles>) -> Result<&mut Interpreter<F>, String> {
        if !self.interpreters.contains_key(kind) {
            let known = self.kinds.get(kind).and_then(|roles| roles.as_ref().ok());
            let roles = given.or_else(|| known.cloned()).ok_or_else(|| format!("no device kind {kind:?} here"))?;
            let table = Rc::clone(&self.table);
            let opened = panics::catch(|| Interpreter::new(table, kind, roles)).result;
            self.interpreters.insert(kind.into(), opened.map_err(|panic| panic.sentence())?);
        }
        Ok(self.interpreters.get_mut(kind).expect("it was just put there"))
    }
}

impl<F: Framework> Default for Worker<F> {
    fn default() -> Self {
        Self::new()
    }
}

fn environments(found: Vec<(&str, Vec<(&str, &str)>)>) -> Json {
    let variables = |set: Vec<(&str, &str)>| set.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Map<_, _>>();
    found.into_iter().map(|(name, set)| (name.into(), variables(set).into())).collect::<Map<_, _>>().into()
}

fn role_json(role: &Role) -> Json {
    let mut json = json!({"name": role.name, "expression": role.expression, "evidence": role.evidence});
    if let Some(mention) = &role.mention {
        json["mention"] = mention.as_str().into();
    }
    json
}

fn roles_of(json: &Json) -> Result<Roles, String> {
    let text = |facts: &Json, key: &str| facts[key].as_str().map(str::to_owned);
    let one = |facts: &Json| {
        Some(Role {
            name: text(facts, "name")?,
            expression: text(facts, "expression")?,
            evidence: text(facts, "evidence")?,
            mention: text(facts, "mention"),
        })
    };
    let roles = json.as_object().ok_or("roles are no object")?;
    roles.iter().map(|(role, facts)| Ok((role.clone(), one(facts).ok_or_else(|| format!("role {role} is {facts:.80}"))?))).collect()
}

/// Return the version of a package that a `Cargo.lock` holds.
#[must_use]
pub fn locked(lock: &str, package: &str) -> String {
    let after = lock.split_once(&format!("name = \"{package}\"\nversion = \"")).map_or("unknown", |(_, after)| after);
    after.split('"').next().unwrap_or_default().to_owned()
}

/// Return what is recorded about the machine; no name and no path.
fn machine() -> Json {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let system = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        other => other,
    };
    let mut found = json!({"system": system, "machine": std::env::consts::ARCH, "cores": cores.to_string()});
    if let Ok(release) = std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        found["release"] = release.trim().into();
    }
    found
}
