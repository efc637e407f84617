//! An operation's key specification, with the expression from the environment.

use lambda_idempotency_keys::{
    KeyPath, Secret,
    producer::{ExpressionUse, KeySpec, KeySpecError},
};

use super::Operation;
use crate::{environment, error::ConfigError};

impl Operation {
    /// A mistake in the key, with the environment variable that the expression came from.
    pub(super) fn with_variable(&self, error: ConfigError) -> ConfigError {
        match (error, &self.key_variable) {
            (
                ConfigError::KeySpec(KeySpecError::Expression {
                    operation,
                    what: ExpressionUse::Key,
                    source,
                }),
                Some(variable),
            ) if std::env::var_os(variable).is_some() => {
                ConfigError::VariableExpression { operation, variable: variable.clone(), source }
            }
            (error, _) => error,
        }
    }

    /// Its key specification, with the expression from the environment variable if one is named.
    pub(super) fn spec(&self) -> Result<KeySpec, ConfigError> {
        let spec = self.keys.clone();
        let Some(variable) = &self.key_variable else { return Ok(spec) };
        match environment::text(variable)? {
            Some(value) => Ok(spec.key(KeyPath::parse(&value))),
            None if spec.key_path().is_some() => Ok(spec),
            None => Err(ConfigError::Variable {
                operation: self.shared_name(),
                variable: variable.clone(),
            }),
        }
    }

    /// The secret that keys are made with, if there is one.
    pub(crate) const fn secret(&self) -> Option<&Secret> {
        self.keys.secret()
    }
}
