//! Compiles the key and the fingerprint of a key specification, for producers and consumers alike.

use std::sync::Arc;

use super::key_spec::{ExpressionUse, KeySpec, KeySpecError};
use crate::{
    Expression, KeyFormat, KeyPath, View, is_operation_name,
    selector::{How, Selector},
};

/// A key specification with compiled expressions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// The operation's name.
    pub operation: Arc<str>,
    /// The format of its keys.
    pub key_format: KeyFormat,
    /// Selects the key. `None`: the id that the source gives the record.
    pub key: Option<Selector>,
    /// Selects what else must agree between deliveries.
    pub fingerprint: Option<Selector>,
}

impl KeySpec {
    /// Compiles the specification for a consumer, together with the expression of its fingerprint.
    /// A producer calls [`producer`](Self::producer).
    ///
    /// # Errors
    /// The specification or the fingerprint's expression has a mistake.
    // For `lambda-idempotency`.
    #[doc(hidden)]
    pub fn compile(&self, fingerprint: Option<&KeyPath>) -> Result<Compiled, KeySpecError> {
        if !is_operation_name(&self.operation) {
            return Err(KeySpecError::name(&self.operation));
        }
        let key = match (&self.key, &self.function) {
            (Some(path), Some(_)) => {
                return Err(self.refused(&format!(
                    "has `.key_fn(..)` and the key expression `{}`, of which only one can make the key; remove one",
                    path.expression
                )));
            }
            (Some(path), None) => Some(self.selector(ExpressionUse::Key, path)?),
            (None, Some(function)) => Some(Selector::made_by(
                View::Payload,
                ".key_fn(..)",
                How::Function(function.clone()),
            )),
            (None, None) => None,
        };
        if let Some(part) = fingerprint.and_then(|path| path.optional.first()) {
            return Err(self.refused(&format!(
                "has a fingerprint whose part `{part}` is optional, which only parts of a key can be; leave \
                 `.optional(..)` out"
            )));
        }
        let fingerprint =
            fingerprint.map(|path| self.selector(ExpressionUse::Fingerprint, path)).transpose()?;
        self.check_powertools()?;
        let operation = Arc::clone(&self.operation);
        Ok(Compiled { operation, key_format: self.key_format.clone(), key, fingerprint })
    }

    fn selector(&self, what: ExpressionUse, path: &KeyPath) -> Result<Selector, KeySpecError> {
        let mistake = |source| {
            let operation = &self.operation;
            KeySpecError::key(format!(
                "the {what} of operation `{operation}` has a mistake: {source}"
            ))
        };
        #[cfg(feature = "powertools")]
        if let Some(keys) = &self.powertools {
            // Without an expression, Powertools makes the key of the whole document.
            let is_whole = path.expression.trim() == "@";
            let expression =
                if is_whole { Ok(None) } else { keys.compile(&path.expression).map(Some) };
            let expression = expression.map_err(mistake)?;
            let how = How::Powertools(keys.clone(), expression);
            return Ok(Selector::made_by(path.view, &path.expression, how));
        }
        let parts = path.optional.iter().map(String::as_str);
        let expression = Expression::compile(&path.expression);
        let expression = expression.and_then(|all| all.optional(parts)).map_err(mistake)?;
        Ok(Selector::of(path.view, expression))
    }

    /// Refuses settings that Powertools keys do not have.
    fn check_powertools(&self) -> Result<(), KeySpecError> {
        let problem = match &self.key {
            _ if !self.is_of_powertools() => return Ok(()),
            _ if self.function.is_some() => {
                "has `.key_fn(..)`, which makes no Powertools keys: they are of what an expression selects; remove it, or \
                 `.powertools(..)`"
            }
            None => {
                "has `.powertools(..)` but no key; add one with `.key(\"...\")`: `@` selects the whole payload, as \
                 Powertools does without an expression"
            }
            Some(path)
                if !path.optional.is_empty() || !matches!(self.key_format, KeyFormat::Hashed) =>
            {
                "makes the keys of another library, which have no optional parts and a fixed format; remove \
                 `.optional(..)` and `.key_format(..)`, or `.powertools(..)`"
            }
            Some(_) => return Ok(()),
        };
        Err(self.refused(problem))
    }

    fn refused(&self, problem: &str) -> KeySpecError {
        KeySpecError::key(format!("operation `{}` {problem}", self.operation))
    }
}
