//! Mistakes in key specifications.

use std::{fmt, sync::Arc};

use crate::ExpressionError;

/// What an expression of an operation is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionUse {
    /// It selects the key.
    Key,
    /// It selects the fingerprint.
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

/// A mistake in a [`KeySpec`](super::KeySpec), or in an operation, which contains a `KeySpec`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySpecError {
    /// The operation's name is invalid.
    #[error(
        "the operation name {name:?} is not valid; use 1 to 128 characters, without `#` and without \
         control characters"
    )]
    Name {
        /// The name.
        name: Arc<str>,
    },
    /// An expression is invalid, or does not list a part that was named as optional.
    #[error("the {what} of operation `{operation}` has a mistake: {source}")]
    Expression {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: ExpressionUse,
        /// The mistake and its position.
        source: ExpressionError,
    },
    /// An expression selects the same value from every record, so that all records would share one
    /// key.
    #[error(
        "the {what} of operation `{operation}` does not distinguish records: `{expression}` selects the \
         same from every record; write a field without quotes, or in double quotes"
    )]
    Constant {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: ExpressionUse,
        /// The expression.
        expression: String,
    },
    /// The key's expression selects one of a few values, so that records of different work would
    /// share a key.
    #[error(
        "the key of operation `{operation}` does not distinguish records: `{expression}` selects one of a \
         few values, because of {by}, and many records share them; add a field that identifies the \
         work: `[order.id, ..]`"
    )]
    FewValues {
        /// The operation.
        operation: Arc<str>,
        /// The expression.
        expression: String,
        /// The function or operator that has only a few results.
        by: &'static str,
    },
    /// The key's expression takes a value that many records share where a record lacks a field, so
    /// that all records without the field would share a key.
    #[error(
        "the key of operation `{operation}` does not distinguish records that lack a field: \
         `{expression}` takes a value in its place that many records share; leave that value out, \
         and such a record has no key; or let a part be missing with `.optional([\"..\"])`"
    )]
    Fallback {
        /// The operation.
        operation: Arc<str>,
        /// The expression.
        expression: String,
    },
    /// As [`Fallback`](Self::Fallback), for keys in the form of another library, which cannot leave parts out.
    #[error(
        "the key of operation `{operation}` does not distinguish records that lack a field: \
         `{expression}` takes a value in its place that many records share; leave that value out; or, \
         to find records that Powertools has made with it, accept that they share keys, with \
         `PowertoolsKeys::accept_collisions()`"
    )]
    PowertoolsFallback {
        /// The operation.
        operation: Arc<str>,
        /// The expression.
        expression: String,
    },
    /// A part of the key is optional, but there is no key expression.
    #[error(
        "operation `{operation}` names part `{part}` of its key as optional but has no key; \
         add one with `.key(\"...\")`"
    )]
    OptionalPart {
        /// The operation.
        operation: Arc<str>,
        /// The part.
        part: String,
    },
    /// Keys in the form of another library cannot have optional parts or a key format.
    #[error(
        "operation `{operation}` makes the keys of another library, which have no optional parts and \
         a fixed format; remove `.optional(..)` and `.key_format(..)`, or `.powertools(..)`"
    )]
    PowertoolsFormat {
        /// The operation.
        operation: Arc<str>,
    },
    /// Keys in the form of another library need a key expression.
    #[error(
        "operation `{operation}` has `.powertools(..)` but no key; add one with `.key(\"...\")`: \
         `@` selects the whole payload, as Powertools does without an expression"
    )]
    PowertoolsWithoutKey {
        /// The operation.
        operation: Arc<str>,
    },
    /// Expressions of another library cannot call the user's functions.
    #[error(
        "operation `{operation}` has `.key_functions(..)`, which has no effect on Powertools keys; \
         remove it, or `.powertools(..)`"
    )]
    PowertoolsFunctions {
        /// The operation.
        operation: Arc<str>,
    },
    /// A payload does not have the id that a source will give its record.
    #[error(
        "a payload alone does not give the keys of operation `{operation}`: it has no key expression, so its \
         keys are the ids that AWS gives records when it delivers them; select a part of the payload with \
         `.key(\"...\")`"
    )]
    DefaultKey {
        /// The operation.
        operation: Arc<str>,
    },
    /// A payload does not have the record that AWS puts around it.
    #[error(
        "a payload alone does not give the keys of operation `{operation}`: its key is taken from the record \
         around the payload, which AWS makes when it delivers the payload; select a part of the payload \
         with `.key(\"...\")`"
    )]
    RecordKey {
        /// The operation.
        operation: Arc<str>,
    },
}
