//! How an operation's keys are made: optional parts, functions, and the form they are stored in.

use std::sync::Arc;

use lambda_idempotency_keys::{
    Expression, ExpressionError, Form, Functions, Reads, Secret, SecretError, View,
    producer::RecipeError,
};

use super::{Operation, Path};
use crate::error::ConfigError;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    pub(super) optional: Vec<String>,
    pub(super) readable: bool,
    pub(super) secret: Option<Result<Secret, SecretError>>,
    pub(super) functions: Functions,
    /// Whether the functions were given by themselves, and not in a recipe.
    pub(super) own_functions: bool,
}

impl Operation {
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

/// What expressions look at in a record's texts: in its payload, and in the record around it.
#[derive(Debug)]
pub(crate) struct Looks([Reads; 2]);

impl Looks {
    pub(super) fn of(paths: &[Option<&Path>]) -> Self {
        let reads = |view| {
            let paths = paths.iter().copied().flatten().filter(|path| path.view == view);
            Reads::of(paths.map(|path| &path.expression))
        };
        Self([reads(View::Payload), reads(View::Record)])
    }

    pub(crate) const fn at(&self, view: View) -> &Reads {
        let [payload, record] = &self.0;
        match view {
            View::Payload => payload,
            View::Record => record,
        }
    }
}
