//! Key specifications with Powertools keys: mistakes that are refused when a producer is made.

use lambda_idempotency_keys::powertools::PowertoolsKeys;
use lambda_idempotency_keys::{
    KeyFormat, Secret,
    producer::{KeySpec, KeySpecError, payload},
};

#[test]
fn mistakes_are_named_with_the_operation() {
    let python = || PowertoolsKeys::python("app.place");
    let secret = KeyFormat::Secret(Secret::new("a secret of mine").unwrap());
    for (spec, expected) in [
        (KeySpec::new("place", "a == b").powertools(python()), "it is a comparison"),
        (
            KeySpec::without_key("place").key_fn(|_| Err("never")).powertools(python()),
            "which makes no Powertools keys",
        ),
        (KeySpec::without_key("place").powertools(python()), "has `.powertools(..)` but no key"),
        (KeySpec::new("place", "lower(id)").powertools(python()), "lower"),
        (
            KeySpec::new("place", payload("[id]").optional(["id"])).powertools(python()),
            "no optional parts",
        ),
        (
            KeySpec::new("place", "id").key_format(KeyFormat::Readable).powertools(python()),
            "a fixed format",
        ),
        (KeySpec::new("place", "id").key_format(secret).powertools(python()), "a fixed format"),
    ] {
        let error = spec.producer().unwrap_err();
        assert!(!matches!(error, KeySpecError::Name(_)), "{error}");
        let error = error.to_string();
        assert!(error.contains("`place`") && error.contains(expected), "{error}");
    }
}
