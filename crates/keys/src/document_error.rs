//! Why a text is not a document.

use crate::limits::MOST_BYTES;

/// Why a text is not a [`Document`](crate::Document). Says where, never what stands there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON, or nested deeper than 127 levels.
    #[error("not valid JSON: {reason} at line {line}, column {column}")]
    Syntax {
        /// What is wrong, in general terms.
        reason: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// An object names one member twice, so that two readers may see two values.
    #[error(
        "an object names a member twice, before line {line}, column {column}: \
         two readers may take different values for it"
    )]
    DuplicateMember {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// More than 8 MiB, which no event of Lambda is.
    #[error("it has {bytes} bytes, more than the {MOST_BYTES} that are read")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}
