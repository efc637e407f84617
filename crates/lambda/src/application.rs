//! The name of the application, which is stored in its idempotency records.

use std::sync::Arc;

use lambda_idempotency_core::record::is_application_name;

use crate::{environment, error::ConfigError};

/// The environment variable that names the application.
const VARIABLE: &str = "IDEMPOTENCY_APPLICATION";
/// The one that Lambda sets.
const FUNCTION: &str = "AWS_LAMBDA_FUNCTION_NAME";

/// The application that the environment names: the variable or, if it is not set, the name of the
/// Lambda function. `None` outside Lambda.
pub(crate) fn from_environment() -> Result<Option<Arc<str>>, ConfigError> {
    choose(environment::text(VARIABLE)?, environment::text(FUNCTION)?)
}

fn choose(
    variable: Option<String>,
    function: Option<String>,
) -> Result<Option<Arc<str>>, ConfigError> {
    match (variable, function.filter(|name| !name.is_empty())) {
        (Some(name), _) => checked(name.into(), VARIABLE).map(Some),
        (None, Some(name)) => checked(name.into(), FUNCTION).map(Some),
        (None, None) => Ok(None),
    }
}

/// Refuses a name that is not valid for an application.
pub(crate) fn checked(name: Arc<str>, from: &'static str) -> Result<Arc<str>, ConfigError> {
    if is_application_name(&name) {
        return Ok(name);
    }
    Err(ConfigError::name(format!(
        "{name:?} (from {from}) cannot name an application; use 1 to 128 visible ASCII characters"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        variable: Option<&str>,
        function: Option<&str>,
    ) -> Result<Option<Arc<str>>, ConfigError> {
        choose(variable.map(Into::into), function.map(Into::into))
    }

    #[test]
    fn the_variable_goes_before_the_functions_name() {
        assert_eq!(chosen(Some("shop"), Some("orders-v2")), Ok(Some("shop".into())));
        assert_eq!(chosen(None, Some("orders-v2")), Ok(Some("orders-v2".into())));
        assert_eq!(chosen(None, None), Ok(None));
        assert_eq!(chosen(None, Some("")), Ok(None), "as if it were not set");
    }

    #[test]
    fn a_name_that_cannot_be_used_is_refused_with_where_it_is_from() {
        for name in ["", "two words", "line\n", "größe", &"x".repeat(129)] {
            let error = chosen(Some(name), Some("orders")).unwrap_err();
            assert!(matches!(error, ConfigError::Name(_)));
            assert!(error.to_string().contains(VARIABLE) && !error.to_string().contains('\n'));
        }
        assert!(chosen(None, Some("two words")).is_err());
    }
}
