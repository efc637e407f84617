//! Keys that a function of the application makes.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{Selection, SelectionError, canonical, jmespath::value::Value};

/// A function that makes the parts of a key from a payload.
#[derive(Clone)]
pub(super) struct KeyFn(Arc<dyn Fn(&str) -> Parts + Send + Sync>);

type Parts = Result<Vec<String>, &'static str>;

/// The function, for messages.
pub(super) const NAME: &str = ".key_fn(..)";

impl KeyFn {
    pub(super) fn new(function: impl Fn(&str) -> Parts + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// The parts as the expression `[a, b]` selects texts.
    pub(super) fn select(&self, payload: &str) -> Result<Selection, SelectionError> {
        // A panic for one record must not end the invocation for all of them.
        let parts = catch_unwind(AssertUnwindSafe(|| (self.0)(payload)));
        let parts = parts.unwrap_or(Err("it panicked")).map_err(SelectionError::Function)?;
        if parts.is_empty() {
            return Err(SelectionError::Missing);
        }
        if let Some(at) = parts.iter().position(String::is_empty) {
            return Err(SelectionError::PartEmpty { part: (at + 1).to_string() });
        }
        let mut bytes = Vec::with_capacity(64);
        let parts = parts.iter().map(|part| Value::text(part)).collect();
        canonical::write(&Value::array(parts), &mut bytes)?;
        Ok(Selection(bytes))
    }
}

impl fmt::Debug for KeyFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFn(..)")
    }
}
