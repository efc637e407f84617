//! Keys that another library makes, for a table that is shared with it or taken over from it.
//!
//! These traits are how a [`KeySpec`](crate::producer::KeySpec) and an operation use such keys without
//! knowing the library. `lambda-idempotency-powertools` implements them; there is no need for others to.

use std::fmt;

use crate::{DocumentError, ExpressionError, Key, Selection, SelectionError};

/// How another library makes its keys.
pub trait ExternalKeys: fmt::Debug + Send + Sync {
    /// Compiles what selects the key; `@` takes the whole document.
    ///
    /// # Errors
    /// The first thing that is wrong, with its offset.
    fn key(&self, expression: &str) -> Result<Box<dyn ExternalExpression>, ExpressionError>;

    /// Compiles what selects the fingerprint.
    ///
    /// # Errors
    /// As [`key`](Self::key).
    fn fingerprint(&self, expression: &str)
    -> Result<Box<dyn ExternalExpression>, ExpressionError>;

    /// A handler's result, as JSON text, in the form in which the library keeps it. `None` if the
    /// library cannot read it.
    fn result(&self, json: &str) -> Option<String>;

    /// A text that differs for settings that make different keys of one payload.
    fn settings(&self) -> String;
}

/// What a library made of a document: an inner error if that has no key under the expression, an outer
/// one if the library cannot read it.
pub type Made<T> = Result<Result<T, SelectionError>, DocumentError>;

/// A compiled expression of another library.
pub trait ExternalExpression: fmt::Debug + Send + Sync {
    /// Whether it selects the same from every record.
    fn is_constant(&self) -> bool;

    /// As [`Expression::few_values`](crate::Expression::few_values).
    fn few_values(&self) -> Option<&'static str>;

    /// As [`Expression::selects`](crate::Expression::selects).
    fn selects(&self, member: &str) -> bool;

    /// The key of a JSON text, and the text that it is a hash of.
    ///
    /// # Errors
    /// See [`Made`].
    fn make_key(&self, json: &str, tenant: Option<&str>) -> Made<(Key, Selection)>;

    /// The fingerprint of a JSON text.
    ///
    /// # Errors
    /// See [`Made`].
    fn make_fingerprint(&self, json: &str) -> Made<String>;
}
