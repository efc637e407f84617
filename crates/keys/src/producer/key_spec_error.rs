//! Mistakes in key specifications.

use std::fmt;

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

/// A mistake in a [`KeySpec`](super::KeySpec), or in an operation, which contains a `KeySpec`. The text says what is
/// wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySpecError {
    /// The operation's name is invalid.
    #[error("{0}")]
    Name(Box<str>),
    /// The expression of the key or of the fingerprint has a mistake or does not distinguish records, there is none
    /// where one is needed, or a setting of the keys excludes another one.
    #[error("{0}")]
    Key(Box<str>),
}

impl KeySpecError {
    pub(super) fn name(name: &str) -> Self {
        let use_instead = "use 1 to 128 characters, without `#` and without control characters";
        Self::Name(format!("the operation name {name:?} is not valid; {use_instead}").into())
    }

    pub(super) fn key(problem: String) -> Self {
        Self::Key(problem.into())
    }
}
