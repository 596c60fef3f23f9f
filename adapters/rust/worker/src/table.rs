//! The operations of a framework, called by name.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::framework::{Arg, Fault, Framework, Operation, Value};
use crate::values::Number;

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
        Arg::DType(_) => "a dtype",
        Arg::Data(_) => "numbers",
        Arg::Text(_) => "a text",
        Arg::List(_) => "a list",
    }
}
