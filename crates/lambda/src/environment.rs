//! Environment variables, read as text.

use std::env::{self, VarError};

use crate::error::ConfigError;

/// The value of a variable; `None` if it is not set. An empty value is one, because what it means differs: it cannot be a
/// key or a name.
pub(crate) fn text(variable: &str) -> Result<Option<String>, ConfigError> {
    match env::var(variable) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(ConfigError::environment(format!(
            "the environment variable {variable} is not valid UTF-8 text; correct it"
        ))),
    }
}

/// Whether a variable switches something on.
pub(crate) fn switch(variable: &'static str) -> Result<bool, ConfigError> {
    match text(variable)?.unwrap_or_default().to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(true),
        "" | "0" | "false" => Ok(false),
        _ => Err(ConfigError::environment(format!(
            "the environment variable {variable} has an unknown value; set it to `1` or `true` to switch on what it is \
             for, and otherwise to `0` or `false`"
        ))),
    }
}
