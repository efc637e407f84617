//! How an operation's keys are made: optional parts, functions, and the form they are stored in.

use std::sync::Arc;

use lambda_idempotency_core::{
    key::{Expression, ExpressionError, Form, Functions, Reads, Secret, SecretError, View},
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
    /// Allows these parts of the [`key`](Self::key) to be missing, `null` or empty: a part of
    /// `{id: order.id, by: user}` by its name, one of `[order.id, user]` by its path. One part at
    /// least must be there. Default: all parts must be.
    ///
    /// A missing part is hashed as missing, so that it is never taken for a value, and keys of
    /// records that have all parts stay what they were.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let place = Operation::new("place-order").key("[order.id, coupon]").optional(["coupon"]);
    /// # place.check().unwrap();
    /// ```
    #[must_use]
    pub fn optional<'n>(mut self, parts: impl IntoIterator<Item = &'n str>) -> Self {
        self.keys.optional.extend(parts.into_iter().map(str::to_owned));
        self.changed()
    }

    /// Stores keys that can be read, such as `place-order#~/acme/+42`, where their parts are short
    /// and safe; all others hashed. **Whoever can read the table's keys can then read these parts.**
    /// Logs show a hash of them all the same. Default: all keys are hashed.
    ///
    /// Those that are hashed all the same are the keys that they would be without this setting. To
    /// switch it on or off in a running function gives all others another key: their duplicates are
    /// not recognised until the retention is over.
    #[must_use]
    pub fn readable_keys(mut self) -> Self {
        self.keys.readable = true;
        self.changed()
    }

    /// Makes keys and fingerprints with HMAC-SHA256 and this secret, for keys that are personal data:
    /// who has the table, but not the secret, cannot find out by trying whose they are.
    ///
    /// 16 bytes at least, 32 random ones at best, the same in all functions that share the
    /// operation. Another secret makes other keys: what was done under the old one is then not known.
    #[must_use]
    pub fn key_secret(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.keys.secret = Some(Secret::new(secret));
        self.changed()
    }

    /// Functions of your own, for the expressions of [`key`](Self::key) and
    /// [`fingerprint`](Self::fingerprint).
    ///
    /// ```
    /// use lambda_idempotency::{Functions, Operation};
    ///
    /// let functions = Functions::standard().with("lower", 1, |arguments| match arguments {
    ///     [text] => text.as_str().map(|text| text.to_lowercase().into()).ok_or("it is no text"),
    ///     _ => Err("one text is needed"),
    /// });
    /// let invite = Operation::new("invite").key("lower(email)").functions(functions);
    /// # invite.check().unwrap();
    /// ```
    #[must_use]
    pub fn functions(mut self, functions: Functions) -> Self {
        self.keys.functions = functions;
        self.keys.own_functions = true;
        self.changed()
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
