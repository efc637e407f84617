//! What the keys of an operation are made of, in one place for who sends and who processes.

use std::sync::Arc;

use super::Producer;
use crate::{
    Expression, ExpressionError, Form, Functions, foreign::ForeignKeys, is_operation_name,
};

/// How the keys of an operation are made: its name, where the key is in the payload, and the form.
///
/// Make it once, in code that producer and consumer share. The producer computes keys with it
/// ([`producer`](Self::producer)), the consumer makes its operation of it
/// (`Operation::from(recipe)` in `lambda-idempotency`), and neither can change it alone.
///
/// ```
/// use lambda_idempotency_keys::producer::{Form, Recipe, Secret, SecretError};
///
/// // In a crate of the two:
/// pub fn place_order() -> Recipe {
///     Recipe::new("place-order", "[tenant, order.id]")
/// }
/// // With all there is:
/// pub fn invite(secret: &str) -> Result<Recipe, SecretError> {
///     let form = Form::Secret(Secret::new(secret)?);
///     Ok(Recipe::new("invite", "[email, campaign]").optional(["campaign"]).form(form))
/// }
/// # place_order().producer().unwrap();
/// # invite("4f1f5c0e2b7d49a8").unwrap().producer().unwrap();
/// ```
// Not `non_exhaustive`: what makes an operation of it must not overlook a field.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The operation's name.
    pub operation: Arc<str>,
    /// JMESPath on the payload.
    pub key: String,
    /// The parts of it that may be missing.
    pub optional: Vec<String>,
    /// How the key is written.
    pub form: Form,
    /// The functions that the expression may call.
    pub functions: Functions,
    /// The library whose keys they are, if they are not ours.
    pub dialect: Option<Arc<dyn ForeignKeys>>,
}

/// A mistake in a [`Recipe`]. Wrapping a handler with an operation made of it fails likewise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The operation's name cannot be used.
    #[error(
        "operation name {name:?} cannot be used: it needs 1 to 128 characters, \
         none of them `#` or a control character"
    )]
    Name {
        /// The name.
        name: Arc<str>,
    },
    /// The expression has a mistake, or no such part that could be optional.
    #[error("key of operation `{operation}`: {source}")]
    Expression {
        /// The operation.
        operation: Arc<str>,
        /// The mistake and its place.
        source: ExpressionError,
    },
    /// The expression selects the same from every payload, which would make all of them one.
    #[error(
        "key of operation `{operation}`: `{expression}` selects the same from every payload; \
         a field is written without quotes, or in double quotes"
    )]
    Constant {
        /// The operation.
        operation: Arc<str>,
        /// The expression.
        expression: String,
    },
    /// The expression selects one of a few values, which would make records of different work one.
    #[error(
        "key of operation `{operation}`: `{expression}` selects one of a few values, by {by}, which many \
         records share; name what tells the work from other work, alone or beside it: \
         `[order.id, ..]`"
    )]
    FewValues {
        /// The operation.
        operation: Arc<str>,
        /// The expression.
        expression: String,
        /// The function or operator that leaves only a few values.
        by: &'static str,
    },
    /// Keys of another library are made as that makes them.
    #[error(
        "operation `{operation}` speaks another library's keys, which have no optional parts and \
         no form but their own; leave these out, or the dialect"
    )]
    DialectForm {
        /// The operation.
        operation: Arc<str>,
    },
}

impl Recipe {
    /// Keys of the operation with this name, which are what `key` selects from the payload:
    /// JMESPath, `@` for the whole of it. Every part must be there; keys are hashed.
    ///
    /// An expression on the record *around* the payload is not for producers: AWS makes that
    /// record when the message is delivered.
    #[must_use]
    pub fn new(operation: impl Into<Arc<str>>, key: impl Into<String>) -> Self {
        Self {
            operation: operation.into(),
            key: key.into(),
            optional: Vec::new(),
            form: Form::Hashed,
            functions: Functions::standard(),
            dialect: None,
        }
    }

    /// Allows these parts of the key to be missing, `null` or empty, as
    /// [`Expression::optional`] does. Default: none.
    #[must_use]
    pub fn optional<'n>(mut self, parts: impl IntoIterator<Item = &'n str>) -> Self {
        self.optional.extend(parts.into_iter().map(str::to_owned));
        self
    }

    /// How the key is written: hashed (default), readable, or with a secret.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Functions of your own, for the expression. Default: the standard ones.
    #[must_use]
    pub fn functions(mut self, functions: Functions) -> Self {
        self.functions = functions;
        self
    }

    /// Makes the keys of another library, whose prefix then takes the place of the operation's name:
    /// those of Powertools for AWS Lambda are in `lambda-idempotency-powertools`.
    #[must_use]
    pub fn dialect(mut self, dialect: impl ForeignKeys + 'static) -> Self {
        self.dialect = Some(Arc::new(dialect));
        self
    }

    /// Compiles the recipe. Do it once, when the program starts.
    ///
    /// # Errors
    /// A mistake in the recipe: a name that cannot be used, an expression with a mistake, one that
    /// selects the same, or one of a few values, from
    /// everything, settings that exclude one another.
    pub fn producer(&self) -> Result<Producer, RecipeError> {
        let operation = || Arc::clone(&self.operation);
        if !is_operation_name(&self.operation) {
            return Err(RecipeError::Name { name: operation() });
        }
        let of = |source| RecipeError::Expression { operation: operation(), source };
        let constant =
            || RecipeError::Constant { operation: operation(), expression: self.key.clone() };
        let few = |by| {
            let (operation, expression) = (operation(), self.key.clone());
            Err(RecipeError::FewValues { operation, expression, by })
        };
        let Some(dialect) = &self.dialect else {
            let expression = Expression::compile_with(&self.key, &self.functions).map_err(of)?;
            if expression.is_constant() {
                return Err(constant());
            }
            if let Some(by) = expression.few_values() {
                return few(by);
            }
            let optional = self.optional.iter().map(String::as_str);
            let expression = expression.optional(optional).map_err(of)?;
            return Ok(Producer::of(operation(), expression, self.form.clone()));
        };
        if !self.optional.is_empty() || !matches!(self.form, Form::Hashed) {
            return Err(RecipeError::DialectForm { operation: operation() });
        }
        let expression = dialect.key(&self.key).map_err(of)?;
        if expression.is_constant() {
            return Err(constant());
        }
        if let Some(by) = expression.few_values() {
            return few(by);
        }
        Ok(Producer::speaking(operation(), self.key.clone(), expression))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_with_the_operation() {
        for (recipe, expected) in [
            (Recipe::new("", "id"), "operation name \"\""),
            (Recipe::new("a#b", "id"), "operation name \"a#b\""),
            (Recipe::new("place", "id["), "operation `place`: invalid JMESPath"),
            (Recipe::new("place", ""), "it is empty; `@` stands for the whole payload"),
            (Recipe::new("place", "'id'"), "`'id'` selects the same from every payload"),
            (Recipe::new("place", "length(items)"), "one of a few values, by `length`, which many"),
            (Recipe::new("place", "[id]").optional(["no"]), "it lists `id`"),
        ] {
            let error = recipe.producer().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
