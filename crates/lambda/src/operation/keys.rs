//! How an operation's keys are made: optional parts, functions, and the form they are stored in.

use std::sync::Arc;

use lambda_idempotency_keys::{
    Expression, ExpressionError, Form, KeyPath, Secret, producer::RecipeError,
};

use super::{Keys, Operation, prepared::Path};
use crate::error::ConfigError;

impl Operation {
    /// A mistake in the key, with the variable that it came from.
    pub(super) fn with_variable(&self, error: ConfigError) -> ConfigError {
        match (error, &self.key_variable) {
            (ConfigError::Expression { operation, what: "key", source }, Some(variable))
                if std::env::var_os(variable).is_some() =>
            {
                ConfigError::VariableExpression { operation, variable: variable.clone(), source }
            }
            (error, _) => error,
        }
    }

    /// The key's expression, if there is one: from the environment, if that is asked for.
    pub(super) fn key_path(&self) -> Result<Option<KeyPath>, ConfigError> {
        let Some(variable) = &self.key_variable else { return Ok(self.key.clone()) };
        match std::env::var(variable) {
            Ok(value) => Ok(Some(KeyPath::parse(&value))),
            Err(_) if self.key.is_some() => Ok(self.key.clone()),
            Err(_) => Err(ConfigError::Variable {
                operation: Arc::clone(&self.name),
                variable: variable.clone(),
            }),
        }
    }

    /// Compiles an expression, and refuses one that cannot tell records apart.
    pub(super) fn compile(&self, what: &'static str, path: &KeyPath) -> Result<Path, ConfigError> {
        let operation = Arc::clone(&self.name);
        let expression = match self.expression(&path.expression) {
            Ok(expression) => expression,
            Err(source) => return Err(ConfigError::Expression { operation, what, source }),
        };
        if expression.is_constant() {
            let expression = path.expression.clone();
            return Err(ConfigError::Constant { operation, what, expression });
        }
        self.tells_apart(what, path, expression.few_values())?;
        Ok(Path { view: path.view, expression })
    }

    /// Refuses a key that is one of a few values, because of `by`.
    pub(super) fn tells_apart(
        &self,
        what: &str,
        path: &KeyPath,
        by: Option<&'static str>,
    ) -> Result<(), ConfigError> {
        let Some(by) = by.filter(|_| what == "key") else { return Ok(()) };
        let (operation, expression) = (Arc::clone(&self.name), path.expression.clone());
        Err(RecipeError::FewValues { operation, expression, by }.into())
    }

    pub(super) fn form(&self) -> Result<Form, ConfigError> {
        let operation = || Arc::clone(&self.name);
        let Keys { optional, readable, secret, .. } = &self.keys;
        if self.dialect.is_some() && (*readable || secret.is_some() || !optional.is_empty()) {
            return Err(RecipeError::DialectForm { operation: operation() }.into());
        }
        match secret {
            Some(_) if *readable => Err(ConfigError::ReadableSecret { operation: operation() }),
            Some(Ok(secret)) => Ok(Form::Secret(secret.clone())),
            Some(Err(source)) => {
                Err(ConfigError::Secret { operation: operation(), source: source.clone() })
            }
            None if *readable => Ok(Form::Readable),
            None => Ok(Form::Hashed),
        }
    }

    /// Refuses functions that no expression can call.
    pub(super) fn functions_fit(&self) -> Result<(), ConfigError> {
        let why = if self.dialect.is_some() {
            "a dialect has its own functions"
        } else if self.key.is_none() && self.key_variable.is_none() && self.fingerprint.is_none() {
            "the operation has no expression that could call them"
        } else {
            return Ok(());
        };
        if !self.keys.own_functions {
            return Ok(());
        }
        Err(ConfigError::Functions { operation: Arc::clone(&self.name), why })
    }

    /// The secret that keys are made with, if there is one.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        self.keys.secret.as_ref()?.as_ref().ok()
    }

    /// Compiles an expression with the operation's functions.
    pub(super) fn expression(&self, text: &str) -> Result<Expression, ExpressionError> {
        Expression::compile_with(text, &self.keys.functions)
    }

    /// The key's expression, with the parts of it that are optional. What it could fold is logged.
    pub(super) fn with_optional(&self, key: Option<Path>) -> Result<Option<Path>, ConfigError> {
        let optional = &self.keys.optional;
        let operation = || Arc::clone(&self.name);
        let Some(Path { view, expression }) = key else {
            return match optional.first() {
                Some(part) if self.dialect.is_none() => {
                    Err(ConfigError::OptionalPart { operation: operation(), part: part.clone() })
                }
                _ => Ok(None),
            };
        };
        for warning in expression.warnings() {
            let expression = expression.as_str();
            tracing::warn!(operation = &*self.name, expression, "key expression: {warning}");
        }
        let expression =
            expression.optional(optional.iter().map(String::as_str)).map_err(|source| {
                ConfigError::Expression { operation: operation(), what: "key", source }
            })?;
        Ok(Some(Path { view, expression }))
    }
}
