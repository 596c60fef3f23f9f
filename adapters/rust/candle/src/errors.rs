//! candle's typed errors as facts: the variant is the type, and the text goes without a backtrace.

use candle_core::Error;
use worker::{ErrorFact, Fault};

/// Why an expression of the table has no value: candle's error, or that candle has no such thing.
#[derive(Debug)]
pub enum Refused {
    /// candle says no.
    Candle(Box<Error>),
    /// The worker says why there is no answer.
    Fault(Fault),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Candle(Box::new(error))
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Fault(fault) => fault,
            Refused::Candle(error) => Self::Error(ErrorFact {
                kind: variant(&error).into(),
                module: "candle_core".into(),
                bases: vec!["Error".into()],
                text: text(&error),
            }),
        }
    }
}

/// Return what an error says, with its context and without a backtrace.
pub fn text(error: &Error) -> String {
    match error {
        Error::WithBacktrace { inner, .. } => text(inner),
        Error::Context { inner, context } => format!("{context}\n{}", text(inner)),
        Error::WithPath { inner, path } => format!("path: {} {}", path.display(), text(inner)),
        plain => plain.to_string(),
    }
}

/// Return the name of an error's variant, that of what is wrapped.
fn variant(error: &Error) -> &'static str {
    macro_rules! names {
        ($($name:ident),*) => {
            match error {
                Error::WithBacktrace { inner, .. } | Error::Context { inner, .. } | Error::WithPath { inner, .. } => variant(inner),
                $(Error::$name { .. } => stringify!($name),)*
            }
        };
    }
    names!(
        UnexpectedDType,
        DTypeMismatchBinaryOp,
        UnsupportedDTypeForOp,
        DimOutOfRange,
        DuplicateDimIndex,
        UnexpectedNumberOfDims,
        UnexpectedShape,
        ShapeMismatch,
        ShapeMismatchBinaryOp,
        ShapeMismatchCat,
        ShapeMismatchSplit,
        OnlySingleDimension,
        EmptyTensor,
        DeviceMismatchBinaryOp,
        NarrowInvalidArgs,
        Conv1dInvalidArgs,
        InvalidIndex,
        BroadcastIncompatibleShapes,
        CannotSetVar,
        MatMulUnexpectedStriding,
        RequiresContiguous,
        OpRequiresAtLeastOneTensor,
        OpRequiresAtLeastTwoTensors,
        BackwardNotSupported,
        NotCompiledWithCudaSupport,
        NotCompiledWithMetalSupport,
        CannotFindTensor,
        Cuda,
        Metal,
        TryFromIntError,
        Npy,
        Zip,
        ParseInt,
        FromUtf8,
        Io,
        SafeTensor,
        UnsupportedSafeTensorDtype,
        Wrapped,
        WrappedContext,
        Msg,
        UnwrapNone
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, DeviceLocation};

    #[test]
    fn an_error_is_its_variant_and_says_what_it_says_whatever_is_around_it() {
        let error = Error::DeviceMismatchBinaryOp { lhs: DeviceLocation::Cpu, rhs: DeviceLocation::Cuda { gpu_id: 0 }, op: "add" };
        let backtrace = Box::new(std::backtrace::Backtrace::force_capture());
        let wrapped = Error::WithBacktrace { inner: Box::new(error), backtrace }.context("in a layer");
        let Fault::Error(fact) = Fault::from(Refused::from(wrapped)) else { panic!("an error is an error") };
        assert_eq!(fact.kind, "DeviceMismatchBinaryOp");
        assert_eq!(fact.text, "in a layer\ndevice mismatch in add, lhs: Cpu, rhs: Cuda { gpu_id: 0 }");
    }

    #[test]
    fn a_dtype_that_is_not_there_is_not_offered() {
        assert_eq!(crate::dtypes::dtype("float64").expect("candle has it"), DType::F64);
        assert!(matches!(crate::dtypes::dtype("complex64"), Err(Fault::NotOffered(_))));
    }
}
