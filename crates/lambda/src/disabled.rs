//! The switch for development that turns the protection against duplicates off.

use crate::{environment, error::ConfigError};

/// The environment variable.
const VARIABLE: &str = "IDEMPOTENCY_DISABLED";
/// Lambda sets it to the name of the function.
const FUNCTION: &str = "AWS_LAMBDA_FUNCTION_NAME";

/// Whether the environment turns the protection off.
pub(crate) fn from_environment() -> Result<bool, ConfigError> {
    choose(environment::text(VARIABLE)?, environment::text(FUNCTION)?)
}

/// A function that Lambda runs has to be named: a `1` that is copied from a developer's environment into a template,
/// and from one stage into another, must not turn the protection off there.
fn choose(variable: Option<String>, function: Option<String>) -> Result<bool, ConfigError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variable: &str, function: Option<&str>) -> Result<bool, ConfigError> {
        choose(Some(variable.to_owned()), function.map(str::to_owned))
    }

    #[test]
    fn outside_lambda_one_turns_the_protection_off() {
        assert_eq!(choose(None, None), Ok(false));
        for (value, is_disabled) in
            [("", false), ("0", false), ("False", false), ("1", true), ("TRUE", true)]
        {
            assert_eq!(chosen(value, None), Ok(is_disabled), "{value}");
        }
        assert!(chosen("yes", None).unwrap_err().to_string().contains("`1`"));
    }

    #[test]
    fn on_lambda_the_function_has_to_be_named() {
        assert_eq!(chosen("0", Some("orders-dev")), Ok(false));
        assert_eq!(chosen("orders-dev", Some("orders-dev")), Ok(true));
        for value in ["1", "true", "orders-prod"] {
            let error = chosen(value, Some("orders-dev")).unwrap_err().to_string();
            assert!(error.contains("`orders-dev`"), "{error}");
        }
    }
}
