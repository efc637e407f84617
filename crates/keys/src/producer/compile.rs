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
            return Err(KeySpecError::Name { name: operation() });
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
        let key = match (&self.key, self.optional.first()) {
            (None, None) => None,
            (None, Some(part)) => {
                let operation = Arc::clone(&self.operation);
                return Err(KeySpecError::OptionalPart { operation, part: part.clone() });
            }
            (Some(path), _) => {
                let CompiledPath { view, text, expression } = compile(ExpressionUse::Key, path)?;
                let optional = self.optional.iter().map(String::as_str);
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
        let operation = || Arc::clone(&self.operation);
        if self.functions.is_some() {
            return Err(KeySpecError::PowertoolsFunctions { operation: operation() });
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
        let Some(key) = &self.key else {
            return Err(KeySpecError::PowertoolsWithoutKey { operation: operation() });
        };
        let key = compile(ExpressionUse::Key, key)?;
        let fingerprint = fingerprint.map(|path| compile(ExpressionUse::Fingerprint, path));
        let fingerprint = fingerprint.transpose()?;
        if !self.optional.is_empty() || !matches!(self.key_format, KeyFormat::Hashed) {
            return Err(KeySpecError::PowertoolsFormat { operation: operation() });
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
        let operation = Arc::clone(&self.operation);
        expression.map_err(|source| KeySpecError::Expression { operation, what, source })
    }

    /// Refuses an expression that selects the same value from every record; and a key that is one
    /// of a few values because of `few_by`, or the same for all records without some field.
    fn check_distinguishes(
        &self,
        what: ExpressionUse,
        path: &KeyPath,
        (is_constant, few_by, has_fallback): (bool, Option<&'static str>, bool),
    ) -> Result<(), KeySpecError> {
        let (operation, expression) = (Arc::clone(&self.operation), path.expression.clone());
        if is_constant {
            return Err(KeySpecError::Constant { operation, what, expression });
        }
        match (what, few_by) {
            (ExpressionUse::Key, Some(by)) => {
                Err(KeySpecError::FewValues { operation, expression, by })
            }
            (ExpressionUse::Key, None) if has_fallback => Err(match self.powertools {
                Some(_) => KeySpecError::PowertoolsFallback { operation, expression },
                None => KeySpecError::Fallback { operation, expression },
            }),
            _ => Ok(()),
        }
    }
}
