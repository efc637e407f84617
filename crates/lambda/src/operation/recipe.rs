//! Operations and those who send to them: one recipe for the keys of both.

use std::sync::Arc;

use lambda_idempotency_core::{
    key::{Form, View},
    producer::{Producer, Recipe},
};

use super::{Operation, keys::Keys};
use crate::error::ConfigError;

/// The operation whose keys are made by this recipe, which its producers have too.
///
/// ```
/// use lambda_idempotency::{Operation, producer::Recipe};
///
/// let recipe = Recipe::new("place-order", "[tenant, order.id]");
/// // The consumer; what is no business of the producer is said here:
/// let operation = Operation::from(recipe.clone()).max_failures(3);
/// // The producer:
/// let producer = recipe.producer().unwrap();
/// # operation.check().unwrap();
/// ```
impl From<Recipe> for Operation {
    fn from(recipe: Recipe) -> Self {
        let Recipe { operation, key, optional, form, functions, dialect } = recipe;
        let (readable, secret) = match form {
            Form::Hashed => (false, None),
            Form::Readable => (true, None),
            Form::Secret(secret) => (false, Some(Ok(secret))),
        };
        let keys = Keys { optional, readable, secret, functions, own_functions: false };
        Self { keys, dialect, ..Self::new(operation).key(key) }
    }
}

impl Operation {
    /// What computes the keys of payloads that are still to be sent; see
    /// [`producer`](crate::producer). For programs that have the operation anyway: a
    /// [`Recipe`](crate::producer::Recipe) does without Lambda.
    ///
    /// ```
    /// use lambda_idempotency::Operation;
    ///
    /// let place = Operation::new("place-order").key("orderId");
    /// let message = place.producer()?.message(&serde_json::json!({ "orderId": 7 }))?;
    /// assert_eq!(message.body(), r#"{"orderId":7}"#);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A mistake in the operation; a key that a producer cannot know, because AWS makes what it is
    /// taken from.
    pub fn producer(&self) -> Result<Producer, ConfigError> {
        let prepared = self.prepared()?;
        let unknown =
            |why| ConfigError::UnknownToProducers { operation: Arc::clone(&self.name), why };
        let path = self.key_path()?.ok_or_else(|| {
            unknown("it names no key, so that a record is known by what its source calls it")
        })?;
        if path.view == View::Record || self.whole_record {
            return Err(unknown("its key is taken from the record around the payload"));
        }
        let optional = self.keys.optional.iter().map(String::as_str);
        let recipe = Recipe::new(Arc::clone(&self.name), path.expression)
            .optional(optional)
            .form(prepared.form.clone())
            .functions(self.keys.functions.clone());
        let recipe = match &self.dialect {
            Some(dialect) => recipe.dialect(dialect.clone()),
            None => recipe,
        };
        Ok(recipe.producer()?)
    }
}
