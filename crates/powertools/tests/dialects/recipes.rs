//! Recipes with keys of Powertools: what is refused when a producer is made.

use lambda_idempotency_keys::{
    Form, Secret,
    producer::{Recipe, RecipeError},
};
use lambda_idempotency_powertools::Dialect;

#[test]
fn mistakes_are_named_with_the_operation() {
    let python = || Dialect::powertools_python("app.place");
    let secret = Form::Secret(Secret::new("a secret of mine").unwrap());
    for (recipe, expected) in [
        (Recipe::new("place", "a == b").dialect(python()), "one of a few values, by a comparison"),
        (Recipe::new("place", "'id'").dialect(python()), "selects the same"),
        (Recipe::new("place", "lower(id)").dialect(python()), "lower"),
        (Recipe::new("place", "[id]").optional(["id"]).dialect(python()), "no optional parts"),
        (Recipe::new("place", "id").form(Form::Readable).dialect(python()), "no form"),
        (Recipe::new("place", "id").form(secret).dialect(python()), "no form"),
    ] {
        let error = recipe.producer().unwrap_err();
        assert!(!matches!(error, RecipeError::Name { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("`place`") && error.contains(expected), "{error}");
    }
}
