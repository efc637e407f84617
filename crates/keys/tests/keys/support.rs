//! From text to canonical bytes and keys.

use lambda_idempotency_keys::{
    Document, Expression, Key, KeyFormat, Scope, Selection, SelectionError,
};
use proptest::test_runner::Config;

/// The number of cases of a property test, multiplied by the variable `KEYS_TIMES`. Failures are not
/// written to files.
pub(crate) fn cases(cases: u32) -> Config {
    let times: u32 = std::env::var("KEYS_TIMES").map_or(1, |times| times.parse().unwrap());
    let max_global_rejects = 1024 * times;
    Config {
        cases: cases * times,
        max_global_rejects,
        failure_persistence: None,
        ..Config::default()
    }
}

/// Selects from a JSON text.
pub(crate) fn select(expression: &str, json: &str) -> Result<Selection, SelectionError> {
    Expression::compile(expression).unwrap().select(&Document::parse(json).unwrap())
}

/// The selected value as text.
pub(crate) fn selected(expression: &str, json: &str) -> Result<String, SelectionError> {
    select(expression, json)
        .map(|selection| String::from_utf8(selection.canonical_bytes().to_vec()).unwrap())
}

/// The key of what `expression` selects.
pub(crate) fn key(expression: &str, json: &str) -> Result<Key, SelectionError> {
    let scope = Scope { operation: "op", tenant: None };
    select(expression, json).map(|selection| KeyFormat::Hashed.key(&scope, &selection))
}
