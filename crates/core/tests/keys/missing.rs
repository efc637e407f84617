//! What is missing, null or empty is never a key, nor part of one.

use lambda_idempotency_core::key::SelectionError;
use proptest::prelude::*;

use crate::{
    json::json,
    support::{cases, selected},
};

/// JSON texts that are nothing.
fn nothing() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["null", "\"\"", "[]", "{}", " [ ] ", "{ }"])
}

/// Where `a` is there and `b` is not.
const HALF: &[&str] = &[
    "b",
    "[a, b]",
    "[b]",
    "{x: a, y: b}",
    "[a, [b, a]]",
    "[a, {x: [b]}]",
    "c.[a, b]",
    "@ | [b, a]",
    "list[*].[id, b]",
    "list[].{id: id, b: b}",
    "list[?id].[id, b]",
    "b || [a, b]",
    "[b] || [b]",
    "a && [a, b]",
    "to_number(b)",
    "not_null(b, b)",
    "[a, to_number('x')]",
    "list[*].b",
    "b[*].id",
    "list[5]",
    "list[5:]",
];

fn is_refused(result: &Result<String, SelectionError>) -> bool {
    matches!(
        result,
        Err(SelectionError::Missing
            | SelectionError::Empty
            | SelectionError::PartMissing { .. }
            | SelectionError::PartEmpty { .. })
    )
}

#[test]
fn a_member_that_is_not_there() {
    let json = r#"{"a":1,"c":{"a":1},"list":[{"id":1},{"id":2}]}"#;
    for expression in HALF {
        let result = selected(expression, json);
        assert!(is_refused(&result), "{expression}: {result:?}");
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_member_that_is_nothing(nothing in nothing(), expression in prop::sample::select(HALF)) {
        let json = format!(
            r#"{{"a":1,"b":{nothing},"c":{{"a":1,"b":{nothing}}},
               "list":[{{"id":1,"b":{nothing}}},{{"id":2,"b":{nothing}}}]}}"#
        );
        // A projection keeps what is empty, and drops what is null: data, not a part.
        prop_assume!(expression != "list[*].b");
        let result = selected(expression, &json);
        prop_assert!(is_refused(&result), "{}: {:?}", expression, result);
    }

    #[test]
    fn whatever_is_nothing_as_a_whole(nothing in nothing()) {
        prop_assert!(is_refused(&selected("@", nothing)));
    }

    /// What is there is taken, wherever it stands.
    #[test]
    fn whatever_is_something(value in json()) {
        let json = format!("{{\"value\":{}}}", value.written(0));
        prop_assert_eq!(is_refused(&selected("value", &json)), value.is_empty());
        prop_assert_eq!(is_refused(&selected("[value]", &json)), value.is_empty());
        prop_assert_eq!(is_refused(&selected("{v: value}", &json)), value.is_empty());
    }
}
