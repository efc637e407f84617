//! The operation of a recipe: producer and consumer have the same keys.

use lambda_idempotency_keys::producer::Recipe;

use super::Operation;

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
        Self::of(recipe)
    }
}
