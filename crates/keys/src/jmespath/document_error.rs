//! The error of a text that is not a document.

use super::limits::MOST_BYTES;

/// Why a text cannot be read as a document. It names the position, never the content. Its text completes the
/// sentence "the payload is ..".
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
    /// There is no text, or only white space.
    #[error("not valid JSON: it is empty")]
    Empty,
    /// An object has two members of the same name, and JSON parsers differ in which one they use.
    #[error(
        "ambiguous: an object has two members of the same name, before line {line}, column {column}; \
         JSON parsers differ in which one they use"
    )]
    DuplicateMember {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// More than 8 MiB. No event of Lambda is that large.
    #[error("{bytes} bytes long, and at most {MOST_BYTES} are read")]
    TooLong {
        /// The length of the text.
        bytes: usize,
    },
}
