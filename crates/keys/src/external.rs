//! Keys in the form of another library, for a table that is shared with it or migrated from it.
//!
//! With these traits, a [`KeySpec`](crate::producer::KeySpec) and an operation use such keys
//! without knowing the library. `PowertoolsKeys` of the feature `powertools` implements them;
//! applications need not.

use std::fmt;

use crate::{DocumentError, ExpressionError, Key, Selection, SelectionError};

/// How another library makes its keys.
pub trait ExternalKeys: fmt::Debug + Send + Sync {
    /// Compiles the expression that selects the key; `@` selects the whole document.
    ///
    /// # Errors
    /// The first mistake, with its offset.
    fn key(&self, expression: &str) -> Result<Box<dyn ExternalExpression>, ExpressionError>;

    /// Compiles the expression that selects the fingerprint.
    ///
    /// # Errors
    /// As [`key`](Self::key).
    fn fingerprint(&self, expression: &str)
    -> Result<Box<dyn ExternalExpression>, ExpressionError>;

    /// Converts a handler's result, as JSON text, to the form in which the library stores it.
    /// `None` if the library cannot represent it.
    fn result(&self, json: &str) -> Option<String>;

    /// A text that differs between settings that make different keys from the same payload.
    fn settings(&self) -> String;
}

/// A key or fingerprint that a library made from a document. The inner error means that the
/// expression selects no key; the outer error means that the library cannot read the document.
pub type Made<T> = Result<Result<T, SelectionError>, DocumentError>;

/// A compiled expression of another library.
pub trait ExternalExpression: fmt::Debug + Send + Sync {
    /// Whether it selects the same value from every record.
    fn is_constant(&self) -> bool;

    /// As [`Expression::few_values`](crate::Expression::few_values).
    fn few_values(&self) -> Option<&'static str>;

    /// As [`Expression::has_fallback`](crate::Expression::has_fallback), unless the library's
    /// settings accept that records share a key.
    fn has_fallback(&self) -> bool;

    /// As [`Expression::selects`](crate::Expression::selects).
    fn selects(&self, member: &str) -> bool;

    /// The key of a JSON text, and the selected text that it is a hash of.
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
