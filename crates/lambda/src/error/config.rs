//! Mistakes in how a function is configured.

use std::fmt;

use lambda_idempotency_keys::producer::KeySpecError;

/// A mistake in how a function is configured, found when it starts. The text names the operation, says what is wrong, and
/// what to do.
///
/// Its `Debug` is its message, because a `main` that returns an error prints its `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The name of an operation or of an application is not valid, or a name is used for two different things, which would
    /// share keys.
    #[error("{0}")]
    Name(Box<str>),
    /// An expression of a key or a fingerprint has a mistake, or does not tell records apart; or settings of keys exclude
    /// each other.
    #[error("{0}")]
    Key(Box<str>),
    /// A source has a filter, an envelope or a setting with which it could not work, is never reached, or does not fit
    /// another source of the same operation; or the function has none.
    #[error("{0}")]
    Source(Box<str>),
    /// The mode of an operation does not fit its other settings, the store or the entry point.
    #[error("{0}")]
    Mode(Box<str>),
    /// A setting has a value that cannot work, or no effect beside another one.
    #[error("{0}")]
    Setting(Box<str>),
    /// An environment variable has a value that cannot be used.
    #[error("{0}")]
    Environment(Box<str>),
}

impl ConfigError {
    pub(crate) fn name(problem: impl Into<Box<str>>) -> Self {
        Self::Name(problem.into())
    }

    pub(crate) fn key(problem: impl Into<Box<str>>) -> Self {
        Self::Key(problem.into())
    }

    pub(crate) fn source(problem: impl Into<Box<str>>) -> Self {
        Self::Source(problem.into())
    }

    pub(crate) fn mode(problem: impl Into<Box<str>>) -> Self {
        Self::Mode(problem.into())
    }

    pub(crate) fn setting(problem: impl Into<Box<str>>) -> Self {
        Self::Setting(problem.into())
    }

    pub(crate) fn environment(problem: impl Into<Box<str>>) -> Self {
        Self::Environment(problem.into())
    }
}

impl From<KeySpecError> for ConfigError {
    fn from(error: KeySpecError) -> Self {
        match error {
            KeySpecError::Name(problem) => Self::Name(problem),
            KeySpecError::Key(problem) => Self::Key(problem),
            other => Self::key(other.to_string()),
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
