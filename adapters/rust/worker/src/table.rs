//! The operations of a framework: written as its own expressions, called by name.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::framework::{Arg, Fault, Framework, Value};
use crate::values::Number;

/// A loop that is timed, as the protocol's page says; `READ` and `SHOWN` are for one that reads a value before it waits.
const TIMED: &str = r#"{0}
{4}
for _ in 0..{2} {
    let mut value = right.clone();
    let started = std::time::Instant::now();
    for _ in 0..{1} {
        value = {3};
    }
    let returned = started.elapsed();READ
    {4}
    println!("returned {returned:?},SHOWN synchronised {:?}", started.elapsed());
}"#;

/// A loop of moves that is timed: all that arrive are kept.
const MOVED: &str = r#"{0}
{4}
for _ in 0..{2} {
    let mut arrived = Vec::new();
    let started = std::time::Instant::now();
    for _ in 0..{1} {
        arrived.push({3});
    }
    let returned = started.elapsed();
    {4}
    println!("returned {returned:?}, synchronised {:?}", started.elapsed());
}"#;

/// Call of an operation; `None` when the arguments aren't the ones that it takes.
pub type Call<F> = fn(&F, &[Arg<F>]) -> Result<Option<Value<F>>, Fault>;

/// One line of a framework's table. A name may stand there several times, for other kinds of arguments: the first that fits is called.
pub struct Operation<F: Framework> {
    /// The neutral name, see `cases/words.py`.
    pub name: &'static str,
    /// The names of the parameters, in order.
    pub parameters: &'static [&'static str],
    /// Which parameters take plain numbers.
    pub numbers: Vec<bool>,
    /// The native expression with `{0}`, `{1}` in the arguments' places.
    pub phrase: String,
    /// What runs.
    pub call: Call<F>,
}

/// A framework's operations.
pub struct Table<F: Framework> {
    rows: BTreeMap<&'static str, Vec<Operation<F>>>,
}

impl<F: Framework> Table<F> {
    /// Take the framework's own table.
    #[must_use]
    pub fn new() -> Self {
        let mut rows: BTreeMap<&'static str, Vec<Operation<F>>> = BTreeMap::new();
        for operation in F::operations() {
            rows.entry(operation.name).or_default().push(operation);
        }
        Self { rows }
    }

    /// Return the names of what is offered.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.rows.keys().copied()
    }

    /// Say that an operation isn't there.
    ///
    /// # Errors
    /// `NotOffered`, when it isn't.
    pub fn require(&self, name: &str) -> Result<(), Fault> {
        if self.rows.contains_key(name) { Ok(()) } else { Err(Fault::NotOffered(format!("{} offers no {name}", F::NAME))) }
    }

    /// Return the names of an operation's parameters, those of the form with the most.
    #[must_use]
    pub fn parameters(&self, name: &str) -> &'static [&'static str] {
        let forms = self.rows.get(name).map_or(&[][..], Vec::as_slice);
        forms.iter().map(|form| form.parameters).max_by_key(|names| names.len()).unwrap_or_default()
    }

    /// Call an operation in the first form that takes these arguments.
    ///
    /// # Errors
    /// What the framework says, or `NotOffered`.
    pub fn call(&self, framework: &F, name: &str, args: &[Arg<F>]) -> Result<Value<F>, Fault> {
        self.require(name)?;
        for form in &self.rows[name] {
            if let Some(value) = (form.call)(framework, args)? {
                return Ok(value);
            }
        }
        let kinds: Vec<&str> = args.iter().map(kind).collect();
        Err(Fault::NotOffered(format!("{} offers no {name} of {}", F::NAME, kinds.join(" and "))))
    }

    /// Return the phrases: by operation, and `OPERATION/N` for the form whose argument N is a plain number where the first form has none.
    #[must_use]
    pub fn phrases(&self) -> Map<String, Json> {
        let mut found = Map::new();
        for (name, forms) in &self.rows {
            for form in forms {
                let plain = form.numbers.iter().zip(&forms[0].numbers).position(|(number, first)| *number && !*first);
                let key = plain.map_or_else(|| (*name).to_string(), |at| format!("{name}/{at}"));
                found.entry(key).or_insert_with(|| form.phrase.clone().into());
            }
        }
        let reading = "\n    std::hint::black_box({5});\n    let read = started.elapsed();";
        found.insert("timed".into(), TIMED.replace("READ", "").replace("SHOWN", "").into());
        found.insert("timed/read".into(), TIMED.replace("READ", reading).replace("SHOWN", " read {read:?},").into());
        found.insert("timed/moved".into(), MOVED.into());
        for (name, text) in F::phrases() {
            found.insert(name.to_string(), text.into());
        }
        found
    }
}

impl<F: Framework> Default for Table<F> {
    fn default() -> Self {
        Self::new()
    }
}

fn kind<F: Framework>(arg: &Arg<F>) -> &'static str {
    match arg {
        Arg::Value(Value::None) => "nothing",
        Arg::Value(Value::Number(Number::Bool(_))) => "a truth",
        Arg::Value(Value::Number(Number::Int(_))) => "a whole number",
        Arg::Value(Value::Number(Number::Float(_))) => "a fraction",
        Arg::Value(Value::Number(Number::Complex(..))) => "a complex number",
        Arg::Value(Value::Tensor(_)) => "a tensor",
        Arg::Value(Value::Device(_)) => "a device",
        Arg::Value(Value::List(_)) => "plain numbers",
        Arg::Value(Value::Buffer(_)) => "host memory",
        Arg::Value(Value::Opaque(_)) => "a module or a loader",
        Arg::DType(_) => "a dtype",
        Arg::Data(_) => "numbers",
        Arg::Text(_) => "a text",
        Arg::List(_) => "a list",
    }
}

/// Return a native expression with `{0}`, `{1}` in the places of its parameters.
#[must_use]
pub fn phrase(expression: &str, parameters: &[&str]) -> String {
    let mut made = String::new();
    let mut word = String::new();
    let flush = |word: &mut String, made: &mut String| {
        match parameters.iter().position(|name| name == word) {
            Some(n) => made.push_str(&format!("{{{n}}}")),
            None => made.push_str(word),
        }
        word.clear();
    };
    for letter in expression.chars() {
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
        } else {
            flush(&mut word, &mut made);
            made.push(letter);
        }
    }
    flush(&mut word, &mut made);
    made
}

/// Make a table of operations: `name(parameter: Type, ...) => native expression;` for each.
///
/// The expression is what runs, and with places for the arguments it is also the phrase that is shown; where what runs is
/// longer than what a user would write, the phrase is given: `name(x: Tensor) as "{0}.native()" => longer(x)?;`. The parameters
/// are owned values of native types (see [`FromArg`]); `?` may be used (see [`Framework::Error`]); what comes out is
/// a type with [`IntoValue`]. The name behind the framework's type is what the framework itself is called in the expressions.
#[macro_export]
macro_rules! operations {
    ($framework:ty, $this:ident; $($name:ident($($parameter:ident: $native:ty),*) $(as $text:literal)? => $body:expr;)*) => {
        vec![$($crate::Operation {
            name: stringify!($name),
            parameters: &[$(stringify!($parameter)),*],
            numbers: vec![$(<$native as $crate::FromArg<$framework>>::NUMBER),*],
            phrase: [$($text.to_string(),)? $crate::phrase(stringify!($body), &[$(stringify!($parameter)),*])].into_iter().next().unwrap_or_default(),
            call: |$this: &$framework, args: &[$crate::Arg<$framework>]| {
                let mut args = args.iter();
                $(
                    let Some(arg) = args.next() else { return Ok(None) };
                    let Some($parameter) = <$native as $crate::FromArg<$framework>>::from_arg($this, arg)? else { return Ok(None) };
                )*
                if args.next().is_some() {
                    return Ok(None);
                }
                let run = move || -> Result<_, <$framework as $crate::Framework>::Error> { Ok($body) };
                run().map(|value| Some($crate::IntoValue::<$framework>::into_value(value))).map_err(Into::into)
            },
        }),*]
    };
}
