//! The one error type of the crate.

use crate::{Isa, WeightType};

/// What was wrong with the arguments of a kernel or of a constructor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A slice has another length than the shapes ask for.
    #[error(
        "`{argument}` holds {got} elements, expected {expected} from the shapes given beside it"
    )]
    Length {
        /// Name of the argument.
        argument: &'static str,
        /// Number of elements that the shapes ask for.
        expected: usize,
        /// Number of elements found.
        got: usize,
    },
    /// Two arguments disagree on a dimension.
    #[error("`{argument}` has {dimension} = {got}, expected {expected} as in `{other}`")]
    Dimension {
        /// Name of the argument that is off.
        argument: &'static str,
        /// Name of the argument it is compared with.
        other: &'static str,
        /// Name of the dimension.
        dimension: &'static str,
        /// The dimension in `other`.
        expected: usize,
        /// The dimension in `argument`.
        got: usize,
    },
    /// A dimension is zero or not divisible by what the format needs.
    #[error("{dimension} = {got} must be a positive multiple of {multiple}")]
    Multiple {
        /// Name of the dimension.
        dimension: &'static str,
        /// What it must be a multiple of.
        multiple: usize,
        /// The value found.
        got: usize,
    },
    /// The product of the dimensions does not fit the address space.
    #[error("a matrix of {rows} rows and {columns} columns does not fit the address space")]
    TooLarge {
        /// Number of rows asked for.
        rows: usize,
        /// Number of columns asked for.
        columns: usize,
    },
    /// The system gives no memory.
    #[error(
        "the system gives no {bytes} bytes of memory for packed weights; use a smaller model or free some memory"
    )]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// An index is past the end.
    #[error("`{argument}` asks for index {got}, but there are only {len}")]
    OutOfRange {
        /// Name of the argument.
        argument: &'static str,
        /// The index asked for.
        got: usize,
        /// The number of elements there are.
        len: usize,
    },
    /// A floating-point weight is infinite, not a number, or beyond 8.3 million.
    #[error(
        "weight [{row}, {column}] of a {weight_type} matrix is not a finite number below 8.3e6; the file is damaged or of another type"
    )]
    WeightNotFinite {
        /// Row of the weight.
        row: usize,
        /// Column of the weight.
        column: usize,
        /// The type that the weights were read as.
        weight_type: WeightType,
    },
    /// The processor lacks an instruction set that was asked for by name.
    #[error("this processor does not support {isa}; use `Kernels::detect()`")]
    IsaUnavailable {
        /// The instruction set asked for.
        isa: Isa,
    },
}

/// `Ok` if a slice has the expected number of elements.
pub(crate) fn check_len(
    argument: &'static str,
    expected: usize,
    got: usize,
) -> Result<(), KernelError> {
    if expected == got { Ok(()) } else { Err(KernelError::Length { argument, expected, got }) }
}

/// `Ok` if two arguments agree on a dimension.
pub(crate) fn check_dimension(
    argument: &'static str,
    other: &'static str,
    dimension: &'static str,
    expected: usize,
    got: usize,
) -> Result<(), KernelError> {
    if expected == got {
        Ok(())
    } else {
        Err(KernelError::Dimension { argument, other, dimension, expected, got })
    }
}

/// `Ok` if a dimension is a positive multiple.
pub(crate) fn check_multiple(
    dimension: &'static str,
    multiple: usize,
    got: usize,
) -> Result<(), KernelError> {
    if got > 0 && got.is_multiple_of(multiple) {
        Ok(())
    } else {
        Err(KernelError::Multiple { dimension, multiple, got })
    }
}
