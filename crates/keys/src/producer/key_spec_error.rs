//! Mistakes in how keys are to be made.

use std::{fmt, sync::Arc};

use crate::ExpressionError;

/// Which expression of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionUse {
    /// What selects the key.
    Key,
    /// What selects the fingerprint.
    Fingerprint,
}

impl fmt::Display for ExpressionUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "key",
            Self::Fingerprint => "fingerprint",
        })
    }
}

/// A mistake in a [`KeySpec`](super::KeySpec), and so in an operation, which contains one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySpecError {
    /// The operation's name cannot be used.
    #[error(
        "operation name {name:?} cannot be used: it needs 1 to 128 characters, \
         none of them `#` or a control character"
    )]
    Name {
        /// The name.
        name: Arc<str>,
    },
    /// An expression has a mistake, or no such part that could be optional.
    #[error("{what} of operation `{operation}`: {source}")]
    Expression {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: ExpressionUse,
        /// The mistake and its place.
        source: ExpressionError,
    },
    /// An expression selects the same from every record, which would make all of them one.
    #[error(
        "{what} of operation `{operation}`: `{expression}` selects the same from every record; \
         a field is written without quotes, or in double quotes"
    )]
    Constant {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: ExpressionUse,
        /// The expression.
        expression: String,
    },
    /// The key's expression selects one of a few values, which would make records of different work one.
    #[error(
        "key of operation `{operation}`: `{expression}` selects one of a few values, by {by}, which many \
         records share; name what tells the work from other work, alone or beside it: \
         `[order.id, ..]`"
    )]
    FewValues {
        /// The operation.
        operation: Arc<str>,
        /// The expression.
        expression: String,
        /// The function or operator that leaves only a few values.
        by: &'static str,
    },
    /// A part of the key is optional, but there is no key expression.
    #[error(
        "operation `{operation}` says that part `{part}` of its key is optional, and names no key; \
         name one with `.key(\"...\")`"
    )]
    OptionalPart {
        /// The operation.
        operation: Arc<str>,
        /// The part.
        part: String,
    },
    /// Keys of another library are made as that makes them.
    #[error(
        "operation `{operation}` makes another library's keys, which have no optional parts and \
         no format but their own; leave these out, or `.powertools(..)`"
    )]
    PowertoolsFormat {
        /// The operation.
        operation: Arc<str>,
    },
    /// Keys of another library have no default.
    #[error(
        "operation `{operation}` has keys of Powertools and names none: name one with `.key(\"...\")`; \
         `@` is the whole payload, as Powertools takes it without an expression"
    )]
    PowertoolsWithoutKey {
        /// The operation.
        operation: Arc<str>,
    },
    /// Expressions of another library cannot call functions of the user's own.
    #[error(
        "operation `{operation}` has `.key_functions(..)` without effect: Powertools has functions of its own; \
         remove yours, or `.powertools(..)`"
    )]
    PowertoolsFunctions {
        /// The operation.
        operation: Arc<str>,
    },
    /// A producer cannot know what a source will call a record.
    #[error(
        "operation `{operation}` has keys that no producer can compute: it names no key, so that a record \
         is known by the id that AWS gives it when it is delivered; name a part of the payload with \
         `.key(\"...\")`"
    )]
    DefaultKey {
        /// The operation.
        operation: Arc<str>,
    },
    /// A producer cannot know the record that AWS makes around the payload.
    #[error(
        "operation `{operation}` has keys that no producer can compute: its key is taken from the record \
         around the payload, which AWS makes when it is delivered; name a part of the payload with \
         `.key(\"...\")`"
    )]
    RecordKey {
        /// The operation.
        operation: Arc<str>,
    },
}
