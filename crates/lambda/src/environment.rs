//! Environment variables, read as text.

use std::env::{self, VarError};

use crate::error::ConfigError;

/// The value of a variable; `None` if it is not set. An empty value is one, because what it means differs: it cannot be a
/// key or a name.
pub(crate) fn text(variable: &str) -> Result<Option<String>, ConfigError> {
    match env::var(variable) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            Err(ConfigError::VariableNotText { variable: variable.into() })
        }
    }
}
