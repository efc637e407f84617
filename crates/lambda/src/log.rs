//! The log line of each delivery, as the environment asks for it.

use lambda_idempotency_engine::observe::TracingObserver;

use crate::{environment, error::ConfigError};

/// If set to `1` or `true`, the log shows the messages of handlers' errors.
const VARIABLE: &str = "IDEMPOTENCY_LOG_ERROR_MESSAGES";

/// The default log; it shows error messages if the environment variable is set.
pub(crate) fn from_environment() -> Result<TracingObserver, ConfigError> {
    let log = TracingObserver::new();
    Ok(if environment::switch(VARIABLE)? { log.showing_error_messages() } else { log })
}
