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

/// A list with a missing part, wherever its way leads from there.
#[test]
fn a_part_that_is_missing_is_refused_wherever_its_list_goes() {
    let json = r#"{"items":[{"id":7,"paid":true}],"id":7}"#;
    for expression in [
        "items[?paid].[tenant, id] | [0]",
        "[tenant, id] | @",
        "max_by(items[*].{t: tenant, i: id}, &i)",
        "map(&[tenant, id], items)",
        "merge({t: tenant}, {i: id})",
        "reverse([tenant, id])",
        "to_string([tenant, id])",
        "[id, [tenant, id][1:]]",
        "items[].[tenant, id][]",
        "values({t: tenant, i: id})",
        "{all: items[*].[tenant, id] | [0]}",
    ] {
        let result = selected(expression, json);
        assert!(is_refused(&result), "{expression}: {result:?}");
        let whole = json.replace(r#""id":7"#, r#""id":7,"tenant":"a""#);
        assert!(selected(expression, &whole).is_ok(), "{expression}");
    }
}

/// What only decides is not in the key.
#[test]
fn parts_may_be_missing_in_conditions_comparisons_and_orders() {
    let json = r#"{"items":[{"id":7,"paid":true},{"id":8}],"id":7}"#;
    for (expression, expected) in [
        ("items[?[tenant, id] == [null, `7`]].id", "[7]"),
        ("items[?contains([tenant, paid], `true`)].id | [0]", "7"),
        ("[tenant] && id", "7"),
        ("![tenant] || id", "7"),
        ("sort_by(items, &length([tenant, id]))[0].id", "7"),
        ("not_null(tenant, id)", "7"),
    ] {
        assert_eq!(selected(expression, json).as_deref(), Ok(expected), "{expression}");
    }
}

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
