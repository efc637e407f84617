//! A missing, null or empty value is never a key or a part of one.

use lambda_idempotency_keys::{Document, Expression, SelectionError};
use proptest::prelude::*;

use crate::{
    json::json,
    support::{cases, selected},
};

/// JSON texts that are null or empty.
fn nothing() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["null", "\"\"", "[]", "{}", " [ ] ", "{ }"])
}

/// Expressions that need `b`, where only `a` is present.
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

/// A list with a missing part is refused, wherever the list is used afterwards.
#[test]
fn a_missing_part_is_refused_wherever_its_list_is_used() {
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

/// A value that is only compared is not in the key.
#[test]
fn parts_may_be_missing_in_conditions_comparisons_and_sorting() {
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

/// Otherwise `false`, `"null"` or `[null]` would be the value of all records without the field.
#[test]
fn a_missing_value_stays_missing_behind_a_condition_and_in_functions() {
    let json = r#"{"t":"a","paid":false,"no":null,"empty":"","list":[],"items":[{},{"id":1}]}"#;
    for expression in [
        "paid && t",
        "(t == 'b') && t",
        "[t, paid && t]",
        "{t: t, by: none && t}",
        "[t, (t == 'b') && paid && t]",
        "to_string(none)",
        "to_string(no)",
        "to_string(list)",
        "[t, to_string(none)]",
        "join('-', [t, to_string(empty)])",
        "to_array(none)",
        "to_array(empty)",
        "to_string(to_array(none))",
        "to_string(paid && t)",
        "map(&id, items)",
        "[t, map(&id, items)]",
        "map(&to_string(id), items)",
    ] {
        let result = selected(expression, json);
        assert!(is_refused(&result), "{expression}: {result:?}");
    }
    for (expression, expected) in [
        ("(t == 'b' && no) || t", r#""a""#),
        ("(paid && no) || (t && t)", r#""a""#),
        ("not_null(paid && no, t)", r#""a""#),
        ("[t, paid]", r#"["a",false]"#),
        ("[t, paid && (t == 'a')]", r#"["a",false]"#),
        ("[t, paid && 'gold']", r#"["a",false]"#),
        ("items[?((id == `2`) && id) == `false`].id", "[1]"),
        ("to_string(items)", r#""[{},{\"id\":1}]""#),
        ("sort_by(items[1:], &to_string(none))[0].id", "1"),
        ("map(&@, [t, t])", r#"["a","a"]"#),
    ] {
        assert_eq!(selected(expression, json).as_deref(), Ok(expected), "{expression}");
    }
}

#[test]
fn an_optional_part_may_be_a_condition_that_does_not_hold() {
    let expression = Expression::compile("{id: id, by: vip && user}").unwrap();
    let expression = expression.optional(["by"]).unwrap();
    let select = |json| expression.select(&Document::parse(json).unwrap());
    let plain = select(r#"{"id":1,"vip":false,"user":"ann"}"#).unwrap();
    assert_eq!(plain.canonical_bytes(), br#"{"by":~,"id":1}"#);
    let vip = select(r#"{"id":1,"vip":true,"user":"ann"}"#).unwrap();
    assert_eq!(vip.canonical_bytes(), br#"{"by":"ann","id":1}"#);
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
        "to_string(not_null([tenant, seq] | [0], none))",
        "[[tenant] | to_string(@), not_null(orderId, [tenant, seq])] | [1]",
    ] {
        assert!(is_refused(&selected(expression, json)), "{expression}");
    }
}

/// A default is a constant, not data of the record.
#[test]
fn a_default_may_be_empty_if_the_record_has_the_part() {
    let expression = "merge({note: ''}, @).[id, note]";
    assert_eq!(selected(expression, r#"{"id":1,"note":"n"}"#).as_deref(), Ok(r#"[1,"n"]"#));
    assert!(is_refused(&selected(expression, r#"{"id":1}"#)), "the default is selected");
    for expression in ["[id, '']", "{id: id, note: ''}", "[id, [id, `null`]]"] {
        assert!(is_refused(&selected(expression, r#"{"id":1}"#)), "{expression}");
    }
}

#[test]
fn a_list_that_is_flattened_with_others_may_be_empty() {
    let json = r#"{"items":[{"id":1}],"extras":[],"none":"","o":{"a":[{"id":2}],"b":[]}}"#;
    for (expression, expected) in [
        ("[items, extras][].id", "[1]"),
        ("[extras, items][] | [0].id", "1"),
        ("o.[a, b][].id", "[2]"),
        ("[items, [extras, extras][]][].id", "[1]"),
    ] {
        assert_eq!(selected(expression, json).as_deref(), Ok(expected), "{expression}");
    }
    for expression in [
        "[extras, extras][]",
        "[items, missing][].id",
        "[items, none][]",
        "[items, [extras]][]",
        "[items, extras] | [0]",
        "[items, extras][0].id",
        "[[items, extras][], extras] | [0]",
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
    for expression in HALF {
        let result = selected(expression, json);
        assert!(is_refused(&result), "{expression}: {result:?}");
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn an_empty_or_null_member_is_refused(nothing in nothing(), expression in prop::sample::select(HALF)) {
        let json = format!(
            r#"{{"a":1,"b":{nothing},"c":{{"a":1,"b":{nothing}}},
               "list":[{{"id":1,"b":{nothing}}},{{"id":2,"b":{nothing}}}]}}"#
        );
        // A projection keeps empty values and drops null: they are data, not parts.
        prop_assume!(expression != "list[*].b");
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
