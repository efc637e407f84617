//! The log line of each delivery, as the environment asks for it.

use lambda_idempotency_engine::observe::TracingObserver;

/// If set to `1` or `true`, the log shows the messages of handlers' errors.
const VARIABLE: &str = "IDEMPOTENCY_LOG_ERROR_MESSAGES";

/// The default log; it shows error messages if the environment variable is set.
pub(crate) fn from_environment() -> TracingObserver {
    let log = TracingObserver::new();
    let value = std::env::var(VARIABLE).unwrap_or_default();
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" => log.showing_error_messages(),
        "" | "0" | "false" => log,
        _ => {
            tracing::warn!(
                "the environment variable {VARIABLE} has no effect: set it to 1 or true \
                 to log the messages of errors, to 0 or false not to log them"
            );
            log
        }
    }
}
