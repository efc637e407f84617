//! Compiles the expressions of a key specification, for producers and consumers alike, and refuses
//! those that cannot distinguish records.

use std::sync::Arc;

use super::{ExpressionUse, KeySpec, KeySpecError};
use crate::{
    Expression, ExpressionError, Functions, KeyFormat, KeyPath, View,
    external::{ExternalExpression, ExternalKeys},
    is_operation_name,
};

/// A key specification with compiled expressions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// The operation's name.
    pub operation: Arc<str>,
    /// The format of its keys.
    pub key_format: KeyFormat,
    /// The expressions that select its keys and fingerprints.
    pub keys: CompiledKeys,
}

/// The compiled expressions of an operation.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each operation")]
pub enum CompiledKeys {
    /// Keys in the form of this library.
    Own {
        /// Selects the key. `None`: the id that the source gives the record.
        key: Option<CompiledPath<Expression>>,
        /// Selects what else must agree between deliveries.
        fingerprint: Option<CompiledPath<Expression>>,
    },
    /// Keys in the form of another library.
    External {
        /// The library.
        library: Arc<dyn ExternalKeys>,
        /// Selects the key.
        key: CompiledPath<Box<dyn ExternalExpression>>,
        /// Selects what else must agree between deliveries.
        fingerprint: Option<CompiledPath<Box<dyn ExternalExpression>>>,
    },
}

/// A compiled expression, and what it is applied to.
#[derive(Debug)]
pub struct CompiledPath<E> {
    /// What the expression is applied to.
    pub view: View,
    /// The expression as it was written.
    pub text: Arc<str>,
    /// The compiled expression.
    pub expression: E,
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
        let operation = || Arc::clone(&self.operation);
        if !is_operation_name(&self.operation) {
            return Err(KeySpecError::name(&self.operation));
        }
        let keys = match &self.powertools {
            Some(library) => self.external_keys(library, fingerprint)?,
            None => self.own_keys(fingerprint)?,
        };
        Ok(Compiled { operation: operation(), key_format: self.key_format.clone(), keys })
    }

    fn own_keys(&self, fingerprint: Option<&KeyPath>) -> Result<CompiledKeys, KeySpecError> {
        let standard;
        let functions = match &self.functions {
            Some(functions) => functions,
            None => {
                standard = Functions::standard();
                &standard
            }
        };
        let compile = |what, path: &KeyPath| {
            let compiled = Expression::compile_with(&path.expression, functions);
            self.checked(what, path, compiled, |it| {
                (it.is_constant(), it.few_values(), it.has_fallback())
            })
        };
        let key = match &self.key {
            None => None,
            Some(path) => {
                let CompiledPath { view, text, expression } = compile(ExpressionUse::Key, path)?;
                let optional = path.optional.iter().map(String::as_str);
                let expression =
                    self.compiled(ExpressionUse::Key, expression.optional(optional))?;
                Some(CompiledPath { view, text, expression })
            }
        };
        let fingerprint = fingerprint.map(|path| compile(ExpressionUse::Fingerprint, path));
        Ok(CompiledKeys::Own { key, fingerprint: fingerprint.transpose()? })
    }

    fn external_keys(
        &self,
        library: &Arc<dyn ExternalKeys>,
        fingerprint: Option<&KeyPath>,
    ) -> Result<CompiledKeys, KeySpecError> {
        let operation = &self.operation;
        if self.functions.is_some() {
            return Err(KeySpecError::key(format!(
                "operation `{operation}` has `.key_functions(..)`, which has no effect on Powertools keys; \
                 remove it, or `.powertools(..)`"
            )));
        }
        let compile = |what, path: &KeyPath| {
            let compiled = match what {
                ExpressionUse::Key => library.key(&path.expression),
                ExpressionUse::Fingerprint => library.fingerprint(&path.expression),
            };
            self.checked(what, path, compiled, |it| {
                (it.is_constant(), it.few_values(), it.has_fallback())
            })
        };
        let Some(path) = &self.key else {
            return Err(KeySpecError::key(format!(
                "operation `{operation}` has `.powertools(..)` but no key; add one with `.key(\"...\")`: \
                 `@` selects the whole payload, as Powertools does without an expression"
            )));
        };
        let key = compile(ExpressionUse::Key, path)?;
        let fingerprint = fingerprint.map(|path| compile(ExpressionUse::Fingerprint, path));
        let fingerprint = fingerprint.transpose()?;
        if !path.optional.is_empty() || !matches!(self.key_format, KeyFormat::Hashed) {
            return Err(KeySpecError::key(format!(
                "operation `{operation}` makes the keys of another library, which have no optional parts and \
                 a fixed format; remove `.optional(..)` and `.key_format(..)`, or `.powertools(..)`"
            )));
        }
        Ok(CompiledKeys::External { library: Arc::clone(library), key, fingerprint })
    }

    /// An expression that compiles and distinguishes records. `selects` returns whether it is constant,
    /// why it has only a few values, if it does, and whether it has a fallback.
    fn checked<E>(
        &self,
        what: ExpressionUse,
        path: &KeyPath,
        compiled: Result<E, ExpressionError>,
        selects: impl FnOnce(&E) -> (bool, Option<&'static str>, bool),
    ) -> Result<CompiledPath<E>, KeySpecError> {
        let expression = self.compiled(what, compiled)?;
        self.check_distinguishes(what, path, selects(&expression))?;
        Ok(CompiledPath { view: path.view, text: Arc::from(path.expression.as_str()), expression })
    }

    fn compiled<E>(
        &self,
        what: ExpressionUse,
        expression: Result<E, ExpressionError>,
    ) -> Result<E, KeySpecError> {
        expression.map_err(|source| {
            let operation = &self.operation;
            KeySpecError::key(format!(
                "the {what} of operation `{operation}` has a mistake: {source}"
            ))
        })
    }

    /// Refuses an expression that selects the same value from every record; and a key that is one
    /// of a few values because of `few_by`, or the same for all records without some field.
    fn check_distinguishes(
        &self,
        what: ExpressionUse,
        path: &KeyPath,
        (is_constant, few_by, has_fallback): (bool, Option<&'static str>, bool),
    ) -> Result<(), KeySpecError> {
        let KeyPath { expression, optional, .. } = path;
        let problem = if is_constant {
            format!(
                ": `{expression}` selects the same from every record; write a field without quotes, or in double quotes"
            )
        } else if what == ExpressionUse::Fingerprint {
            match optional.first() {
                None => return Ok(()),
                Some(part) => format!(
                    ": part `{part}` of `{expression}` is optional, which only parts of a key can be; leave \
                     `.optional(..)` out"
                ),
            }
        } else if let Some(by) = few_by {
            format!(
                ": `{expression}` selects one of a few values, because of {by}, and many records share them; add a field \
                 that identifies the work: `[order.id, ..]`"
            )
        } else if has_fallback {
            let instead = match self.powertools {
                Some(_) => {
                    "or, to find records that Powertools has made with it, accept that they share keys, with \
                     `PowertoolsKeys::accept_collisions()`"
                }
                None => {
                    "and such a record has no key; or let a part be missing with `payload(\"..\").optional([\"..\"])`"
                }
            };
            format!(
                " that lack a field: `{expression}` takes a value in its place that many records share; leave \
                 that value out, {instead}"
            )
        } else {
            return Ok(());
        };
        let operation = &self.operation;
        Err(KeySpecError::key(format!(
            "the {what} of operation `{operation}` does not distinguish records{problem}"
        )))
    }
}
