//! The log line of each delivery, as the environment asks for it.

use lambda_idempotency_engine::observe::TracingObserver;

use crate::{environment, error::ConfigError};

/// If set to `1` or `true`, the log shows the messages of handlers' errors.
const VARIABLE: &str = "IDEMPOTENCY_LOG_ERROR_MESSAGES";

/// The default log; it shows error messages if the environment variable is set.
pub(crate) fn from_environment() -> Result<TracingObserver, ConfigError> {
    let log = TracingObserver::new();
    let value = environment::text(VARIABLE)?.unwrap_or_default();
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(log.showing_error_messages()),
        "" | "0" | "false" => Ok(log),
        _ => Err(ConfigError::LogErrorMessages),
    }
}
