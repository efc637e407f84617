//! The operation of a recipe: producer and consumer have the same keys.

use lambda_idempotency_keys::{Form, producer::Recipe};

use super::{Keys, Operation};

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
