//! Plain values on their way between the wire and a framework: numbers, nested lists of them, host memory.

use serde_json::{Value as Json, json};

/// Values of at most this many elements are read whole; of larger ones, spread positions.
pub const WHOLE: usize = 64;

/// A plain number: what a literal in the source is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A truth.
    Bool(bool),
    /// A whole number, of any width that a framework has.
    Int(i128),
    /// A fraction.
    Float(f64),
    /// Real and imaginary part.
    Complex(f64, f64),
}

impl Number {
    /// Return the number as a float; of a complex one the real part.
    #[must_use]
    pub fn float(self) -> f64 {
        match self {
            Self::Bool(truth) => f64::from(u8::from(truth)),
            #[allow(clippy::cast_precision_loss, reason = "what a float can't hold is what was asked for")]
            Self::Int(whole) => whole as f64,
            Self::Float(real) | Self::Complex(real, _) => real,
        }
    }

    /// Return the number as a whole one; a fraction loses what is behind the point.
    #[must_use]
    pub fn int(self) -> i128 {
        match self {
            Self::Bool(truth) => i128::from(truth),
            Self::Int(whole) => whole,
            #[allow(clippy::cast_possible_truncation, reason = "that is what a cast to an integer dtype does")]
            Self::Float(real) | Self::Complex(real, _) => real as i128,
        }
    }

    /// Read a number off the wire; `"nan"`, `"inf"` and `"-inf"` are text.
    #[must_use]
    pub fn parse(json: &Json) -> Option<Self> {
        match json {
            Json::Bool(truth) => Some(Self::Bool(*truth)),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Some(Self::Int(whole.into())),
                (None, Some(whole)) => Some(Self::Int(whole.into())),
                (None, None) => number.as_f64().map(Self::Float),
            },
            Json::String(text) => match text.as_str() {
                "nan" => Some(Self::Float(f64::NAN)),
                "inf" => Some(Self::Float(f64::INFINITY)),
                "-inf" => Some(Self::Float(f64::NEG_INFINITY)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Return the number as it goes over the wire.
    #[must_use]
    pub fn json(self) -> Json {
        match self {
            Self::Bool(truth) => json!(truth),
            Self::Int(whole) => i64::try_from(whole).map_or_else(|_| json!(u64::try_from(whole).unwrap_or(u64::MAX)), |small| json!(small)),
            Self::Float(real) if real.is_nan() => json!("nan"),
            Self::Float(real) if real.is_infinite() => json!(if real > 0.0 { "inf" } else { "-inf" }),
            Self::Float(real) => json!(real),
            Self::Complex(real, imaginary) => json!([Self::Float(real).json(), Self::Float(imaginary).json()]),
        }
    }
}

/// Numbers in nested lists, which all have the same length on each level.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The lengths of the lists, from the outermost on; none for a single number.
    pub shape: Vec<usize>,
    /// The numbers, row by row.
    pub flat: Vec<Number>,
}

impl Data {
    /// Read nested lists off the wire, complex numbers in two parts. An error says what is wrong with them.
    ///
    /// # Errors
    /// A sentence, for what is no number and for lists of different lengths.
    pub fn parse(real: &Json, imaginary: Option<&Json>) -> Result<Self, String> {
        let mut data = Self { shape: Vec::new(), flat: Vec::new() };
        let mut inner = real;
        while let Json::Array(items) = inner {
            data.shape.push(items.len());
            let Some(first) = items.first() else { break };
            inner = first;
        }
        data.collect(real, 0)?;
        if let Some(imaginary) = imaginary.filter(|json| !json.is_null()) {
            let parts = Self::parse(imaginary, None)?;
            if parts.shape != data.shape {
                return Err("real and imaginary parts have different shapes".into());
            }
            data.flat = data.flat.iter().zip(&parts.flat).map(|(re, im)| Number::Complex(re.float(), im.float())).collect();
        }
        Ok(data)
    }

    fn collect(&mut self, json: &Json, depth: usize) -> Result<(), String> {
        match json {
            Json::Array(items) if self.shape.get(depth) == Some(&items.len()) => {
                items.iter().try_for_each(|item| self.collect(item, depth + 1))
            }
            Json::Array(_) => Err("lists of different lengths are no tensor".into()),
            _ if depth == self.shape.len() => {
                self.flat.push(Number::parse(json).ok_or_else(|| format!("{json} is no number"))?);
                Ok(())
            }
            _ => Err("lists of different depths are no tensor".into()),
        }
    }
}

/// Return the positions that are read of a value with so many elements: all, or at most 16 spread ones.
#[must_use]
pub fn positions(count: usize) -> Vec<usize> {
    if count <= WHOLE {
        return (0..count).collect();
    }
    let mut found: Vec<usize> = (1..15).map(|i| (7919 * i * i + 4099 * i) % count).chain([0, count - 1]).collect();
    found.sort_unstable();
    found.dedup();
    found
}
