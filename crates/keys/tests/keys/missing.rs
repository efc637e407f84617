//! A missing, null or empty value is never a key or a part of one.

use lambda_idempotency_keys::SelectionError;
use proptest::prelude::*;

use crate::{
    json::json,
    support::{cases, selected},
};

/// JSON texts that are null or empty.
fn nothing() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["null", "\"\"", "[]", "{}", " [ ] ", "{ }"])
}

/// Expressions that need `b`, where only `a` is present, and the place of what is missing.
const HALF: &[(&str, Option<&str>)] = &[
    ("b", None),
    ("[a, b]", Some("2")),
    ("[b]", Some("1")),
    ("{x: a, y: b}", Some("`y`")),
    ("[a, [b, a]]", Some("2, 1")),
    ("[a, {x: [b]}]", Some("2, `x`, 1")),
    ("c.[a, b]", Some("2")),
    ("@ | [b, a]", Some("1")),
    ("list[*].[id, b]", Some("1, 2")),
    ("list[*].{x: [b]}", Some("1, `x`, 1")),
    ("[a, list[*].[id, b]]", Some("2, 1, 2")),
    ("not_null(x, [a, b])", Some("2")),
    ("not_null(b, b)", None),
    ("b[*].id", None),
    ("list[5]", None),
];

/// A list with a missing part is refused, wherever the list is used afterwards.
#[test]
fn a_missing_part_is_refused_wherever_its_list_is_used() {
    let json = r#"{"items":[{"id":7}],"id":7}"#;
    for (expression, place) in [
        ("items[*].[tenant, id] | [0]", "1, 1"),
        ("[tenant, id] | @", "1"),
        ("[tenant, id][1]", "1"),
        ("{t: tenant, i: id}.i", "`t`"),
        ("{all: items[*].[tenant, id] | [0]}", "`all`, 1, 1"),
        ("[id, [tenant, id] | [1]]", "2, 1"),
        ("[tenant, id] | not_null([0], [1])", "1"),
        ("[id, not_null(none, [tenant, id] | [0])]", "2, 1"),
    ] {
        let missing = Err(SelectionError::PartMissing { part: place.to_owned() });
        assert_eq!(selected(expression, json), missing, "{expression}");
        let whole = json.replace(r#""id":7"#, r#""id":7,"tenant":"a""#);
        assert!(selected(expression, &whole).is_ok(), "{expression}");
    }
}

/// JMESPath drops them, so that `[{"id":1},{}]` and `[{"id":1}]` would be one key.
#[test]
fn an_item_without_the_value_that_a_projection_selects_is_a_missing_part() {
    for (expression, json, place) in [
        ("items[*].id", r#"{"items":[{"id":1},{}]}"#, "2"),
        ("items[*].id", r#"{"items":[{"id":null},{"id":1}]}"#, "1"),
        ("[*]", "[1,null]", "2"),
        ("items[*].lines[*].id", r#"{"items":[{"lines":[{"id":1},{}]}]}"#, "1, 2"),
        ("items[*].lines[*].id", r#"{"items":[{"lines":[{"id":1}]},{}]}"#, "2"),
        ("[*][0]", "[[1],[]]", "2"),
        ("[t, items[*].id]", r#"{"t":1,"items":[{}]}"#, "2, 1"),
    ] {
        let missing = Err(SelectionError::PartMissing { part: place.to_owned() });
        assert_eq!(selected(expression, json), missing, "{expression} of {json}");
    }
    let json = r#"{"items":[{"id":[]},{"id":""}],"nulls":[null,1]}"#;
    assert_eq!(selected("items[*].id", json).unwrap(), r#"[[],""]"#, "they are not dropped");
    assert_eq!(selected("nulls", json).unwrap(), "[null,1]", "data may hold null");
    let falsy = r#"{"zero":0,"no":false}"#;
    assert_eq!(selected("[zero, no]", falsy).unwrap(), "[0,false]", "they are there");
}

/// Lists in arguments that `not_null` passes over are not in the key.
#[test]
fn parts_may_be_missing_in_arguments_that_not_null_skips() {
    let json = r#"{"orderId":1,"seq":7}"#;
    for (expression, expected) in [
        ("not_null(orderId, [tenant, seq])", "1"),
        ("not_null([tenant, seq] | [0], orderId)", "1"),
        ("[not_null(orderId, [tenant, seq]), seq]", "[1,7]"),
        ("not_null(none, orderId, [tenant, seq])", "1"),
    ] {
        assert_eq!(selected(expression, json).as_deref(), Ok(expected), "{expression}");
    }
    for expression in [
        "not_null([tenant, seq], orderId)",
        "not_null(none, [tenant, seq], orderId)",
        "not_null([tenant, seq] | [1], orderId)",
        "not_null([tenant, seq] | [0], [tenant, seq] | [1])",
    ] {
        assert!(is_refused(&selected(expression, json)), "{expression}");
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
fn a_missing_member_is_refused() {
    let json = r#"{"a":1,"c":{"a":1},"list":[{"id":1},{"id":2}]}"#;
    for (expression, place) in HALF {
        let error = place.map_or(SelectionError::Missing, |place| SelectionError::PartMissing {
            part: place.to_owned(),
        });
        assert_eq!(selected(expression, json), Err(error), "{expression}");
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn an_empty_or_null_member_is_refused(
        nothing in nothing(), (expression, _) in prop::sample::select(HALF),
    ) {
        let json = format!(
            r#"{{"a":1,"b":{nothing},"c":{{"a":1,"b":{nothing}}},
               "list":[{{"id":1,"b":{nothing}}},{{"id":2,"b":{nothing}}}]}}"#
        );
        let result = selected(expression, &json);
        prop_assert!(is_refused(&result), "{}: {:?}", expression, result);
    }

    #[test]
    fn an_empty_or_null_document_is_refused(nothing in nothing()) {
        prop_assert!(is_refused(&selected("@", nothing)));
    }

    /// A value that is present is a key, at any position.
    #[test]
    fn a_present_value_is_a_key(value in json()) {
        let json = format!("{{\"value\":{}}}", value.written(0));
        prop_assert_eq!(is_refused(&selected("value", &json)), value.is_empty());
        prop_assert_eq!(is_refused(&selected("[value]", &json)), value.is_empty());
        prop_assert_eq!(is_refused(&selected("{v: value}", &json)), value.is_empty());
    }
}
