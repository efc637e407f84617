//! The environment variables of the function as a whole: its application, its log, and that it is not protected.

use std::{
    env::{self, VarError},
    sync::Arc,
};

use lambda_idempotency_core::record::is_application_name;
use lambda_idempotency_engine::observe::TracingObserver;

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

/// The environment variable that names the application.
const APPLICATION: &str = "IDEMPOTENCY_APPLICATION";
/// Lambda sets it to the name of the function.
const FUNCTION: &str = "AWS_LAMBDA_FUNCTION_NAME";
const LOG_STREAM: &str = "AWS_LAMBDA_LOG_STREAM_NAME";

/// The application that the environment names: the variable or, if it is not set, the name of the
/// Lambda function. `None` outside Lambda.
pub(crate) fn application() -> Result<Option<Arc<str>>, ConfigError> {
    choose_application(text(APPLICATION)?, text(FUNCTION)?)
}

fn choose_application(
    variable: Option<String>,
    function: Option<String>,
) -> Result<Option<Arc<str>>, ConfigError> {
    match (variable, function.filter(|name| !name.is_empty())) {
        (Some(name), _) => checked_application(name.into(), APPLICATION).map(Some),
        (None, Some(name)) => checked_application(name.into(), FUNCTION).map(Some),
        (None, None) => Ok(None),
    }
}

/// Whether Lambda runs this process, and not `lambda-idempotency invoke`, whose log stream is `local`.
pub(crate) fn is_deployed() -> bool {
    let is_named = env::var_os(FUNCTION).is_some_and(|name| !name.is_empty());
    is_named && env::var_os(LOG_STREAM).is_none_or(|stream| stream != "local")
}

/// Refuses a name that is not valid for an application.
pub(crate) fn checked_application(
    name: Arc<str>,
    from: &'static str,
) -> Result<Arc<str>, ConfigError> {
    if is_application_name(&name) {
        return Ok(name);
    }
    Err(ConfigError::name(format!(
        "{name:?} (from {from}) cannot name an application; use 1 to 128 visible ASCII characters"
    )))
}

/// The switch for development that turns the protection against duplicates off.
const DISABLED: &str = "IDEMPOTENCY_DISABLED";

/// Whether the environment turns the protection off.
pub(crate) fn is_disabled() -> Result<bool, ConfigError> {
    choose_disabled(text(DISABLED)?, text(FUNCTION)?)
}

/// A function that Lambda runs has to be named: a `1` that is copied from a developer's environment into a template,
/// and from one stage into another, must not turn the protection off there.
fn choose_disabled(
    variable: Option<String>,
    function: Option<String>,
) -> Result<bool, ConfigError> {
    let value = variable.unwrap_or_default();
    let function = function.filter(|name| !name.is_empty());
    match (value.to_ascii_lowercase().as_str(), &function) {
        ("" | "0" | "false", _) => Ok(false),
        ("1" | "true", None) => Ok(true),
        (_, Some(function)) if *function == value => Ok(true),
        _ => Err(ConfigError::environment(refusal(&value, function.as_deref()))),
    }
}

/// Why this value does not turn the protection off, and what to do.
fn refusal(value: &str, function: Option<&str>) -> String {
    match function {
        Some(function) => format!(
            "IDEMPOTENCY_DISABLED is set to {value:?}, which does not turn off the protection of a deployed \
             function; remove the variable or, for a function in development whose duplicates may be \
             processed twice, set it to the name of the function, `{function}`"
        ),
        None => format!(
            "IDEMPOTENCY_DISABLED is set to {value:?}, which has no meaning; set it to `1` to process each \
             delivery without protection against duplicates, or remove it"
        ),
    }
}

/// If set to `1` or `true`, the log shows the messages of handlers' errors.
const ERROR_MESSAGES: &str = "IDEMPOTENCY_LOG_ERROR_MESSAGES";

/// The default log; it shows error messages if the environment variable is set.
pub(crate) fn log() -> Result<TracingObserver, ConfigError> {
    let log = TracingObserver::new();
    Ok(if switch(ERROR_MESSAGES)? { log.showing_error_messages() } else { log })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen_application(
        variable: Option<&str>,
        function: Option<&str>,
    ) -> Result<Option<Arc<str>>, ConfigError> {
        choose_application(variable.map(Into::into), function.map(Into::into))
    }

    #[test]
    fn a_name_that_cannot_be_used_is_refused_with_where_it_is_from() {
        for name in ["", "two words", "line\n", "größe", &"x".repeat(129)] {
            let error = chosen_application(Some(name), Some("orders")).unwrap_err();
            assert!(matches!(error, ConfigError::Name(_)));
            assert!(error.to_string().contains(APPLICATION) && !error.to_string().contains('\n'));
        }
        assert!(chosen_application(None, Some("two words")).is_err());
        assert_eq!(chosen_application(None, Some("")), Ok(None), "as if it were not set");
    }

    fn chosen_disabled(variable: &str, function: Option<&str>) -> Result<bool, ConfigError> {
        choose_disabled(Some(variable.to_owned()), function.map(str::to_owned))
    }

    #[test]
    fn outside_lambda_one_turns_the_protection_off() {
        assert_eq!(choose_disabled(None, None), Ok(false));
        for (value, is_disabled) in
            [("", false), ("0", false), ("False", false), ("1", true), ("TRUE", true)]
        {
            assert_eq!(chosen_disabled(value, None), Ok(is_disabled), "{value}");
        }
        assert!(chosen_disabled("yes", None).unwrap_err().to_string().contains("`1`"));
    }

    #[test]
    fn on_lambda_the_function_has_to_be_named() {
        assert_eq!(chosen_disabled("0", Some("orders-dev")), Ok(false));
        assert_eq!(chosen_disabled("orders-dev", Some("orders-dev")), Ok(true));
        for value in ["1", "true", "orders-prod"] {
            let error = chosen_disabled(value, Some("orders-dev")).unwrap_err().to_string();
            assert!(error.contains("`orders-dev`"), "{error}");
        }
    }
}
