//! Parsing only the fields that are read selects the same as parsing everything.

use lambda_idempotency_keys::{Document, Expression, FieldSet, SelectionError};
use proptest::prelude::*;

use crate::{
    json::json,
    support::{cases, selected},
};

fn selected_from_sparse(expression: &str, json: &str) -> Result<String, SelectionError> {
    let expression = Expression::compile(expression).unwrap();
    let document = Document::read(json, &FieldSet::of([&expression])).unwrap();
    let selection = expression.select(&document)?;
    Ok(String::from_utf8(selection.canonical_bytes().to_vec()).unwrap())
}

const EXPRESSIONS: &[&str] = &[
    "a",
    "a.b",
    "[a, b]",
    "{x: a.b, y: c}",
    "a.[b, c]",
    "a[0]",
    "a[*].b",
    "@",
    "json(s).a",
    "json(s).[a.b, c]",
    "[json(s).a, c]",
    "[s] | [*].json(@).a",
    "not_null(a.b, c)",
    "a | b",
];

const TEXTS: &[&str] = &[
    "json(s).a",
    "json(s).a.b",
    "[json(s).a, json(s).b]",
    "json(s).p",
    "json(s).b2",
    "json(s)",
    "s",
    "not_null(t.json(s).x, json(s).b)",
    "[s] | [*].json(@).b",
];

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn as_reading_everything(
        value in json(), other in json(), style in any::<u64>(),
        expression in prop::sample::select(EXPRESSIONS),
        price in prop::sample::select(vec!["1.5", "0.1000000000000000055", "1e300", "7"]),
    ) {
        let text = serde_json::Value::String(format!("{{\"a\":{}}}", other.written(style)));
        let json = format!(
            r#"{{"p":[{price},2.5],"a":{{"p":{price},"b":{},"q":[[0.5]]}},"s":{text},"c":{price},"r":1.25}}"#,
            value.written(style),
        );
        prop_assert_eq!(selected_from_sparse(expression, &json), selected(expression, &json));
    }

    #[test]
    fn of_any_shape(value in json(), expression in prop::sample::select(EXPRESSIONS)) {
        let json = value.written(0);
        prop_assert_eq!(selected_from_sparse(expression, &json), selected(expression, &json));
    }
}

proptest! {
    #![proptest_config(cases(512))]

    /// Each expression has the same result together with others as alone, although they share nested JSON.
    #[test]
    fn as_each_alone(
        value in json(), other in json(), style in any::<u64>(),
        expressions in prop::collection::vec(prop::sample::select(TEXTS), 2..4),
        price in prop::sample::select(vec!["1.5", "0.1000000000000000055", "1e999"]),
    ) {
        let text = format!(
            r#"{{"a":{},"p":{price},"b":{},"b2":[{price}]}}"#,
            value.written(style), other.written(style),
        );
        let json = format!(r#"{{"s":{},"t":{{"s":"{{}}"}}}}"#, serde_json::Value::String(text));
        let compiled = expressions.iter().map(|text| Expression::compile(text).unwrap());
        let compiled: Vec<_> = compiled.collect();
        let document = Document::read(&json, &FieldSet::of(&compiled)).unwrap();
        for (text, expression) in expressions.iter().zip(&compiled) {
            let together = expression.select(&document).map(|selection| {
                String::from_utf8(selection.canonical_bytes().to_vec()).unwrap()
            });
            prop_assert_eq!(together, selected(text, &json), "{}", text);
        }
    }
}

#[test]
fn several_expressions_share_a_reading_and_others_are_refused() {
    let [id, amount, other] =
        ["order.id", "order.amount", "order"].map(|text| Expression::compile(text).unwrap());
    let json = r#"{"order":{"id":"o-1","amount":4.5,"lines":[1,2,3]},"note":"x"}"#;
    let document = Document::read(json, &FieldSet::of([&id, &amount])).unwrap();
    assert_eq!(id.select(&document).unwrap().canonical_bytes(), b"\"o-1\"");
    assert_eq!(amount.select(&document).unwrap().canonical_bytes(), b"4.5e0");
    assert_eq!(other.select(&document), Err(SelectionError::Unread));
}

/// A mistake in a field that no expression reads has no effect.
#[test]
fn fields_that_are_not_read_make_no_difference() {
    for beside in
        [r#""x":1,"x":2"#, r#""x":1e999"#, r#""x":"\ud800""#, r#""x":{"y":[{"z":1,"z":2}]}"#]
    {
        let json = format!(r#"{{"id":"a",{beside},"n":2.5}}"#);
        assert!(Document::parse(&json).is_err(), "{json}");
        assert_eq!(selected_from_sparse("[id, n]", &json).unwrap(), r#"["a",2.5e0]"#, "{json}");
        let [id, x] = ["id", "x"].map(|text| Expression::compile(text).unwrap());
        assert!(Document::read(&json, &FieldSet::of([&id, &x])).is_err(), "{json}");
    }
    let id = Expression::compile("id").unwrap();
    let twice = Document::read(r#"{"id":1,"x":0,"id":2}"#, &FieldSet::of([&id]));
    assert!(twice.unwrap_err().to_string().contains("two members of the same name"));
}

/// Fields that are skipped have to be JSON, roughly.
#[test]
fn a_text_that_is_not_json_is_refused_also_where_it_is_not_read() {
    let id = Expression::compile("id").unwrap();
    let broken = r#"[1} | {"a":[1}] | {"a":1] | {"a" 1} | {"a",1} | {a:1} | {"a"} | [1 2] | [1,] | [,1] | {"a":1,}
        | 01 | 1. | - | tru | nul | NaN | "\x" | "\u12g4" | ] | "#;
    for broken in broken.split('|').map(str::trim).chain(["\"a\nb\""]) {
        let json = format!(r#"{{"id":1,"x":{broken},"y":2}}"#);
        assert!(Document::read(&json, &FieldSet::of([&id])).is_err(), "{broken}");
    }
    for cut in [r#"{"id":1,"x":[1"#, r#"{"id":1,"x":"a"#, r#"{"id":1,"x""#, r#"{"id":1,"x":1"#] {
        assert!(Document::read(cut, &FieldSet::of([&id])).is_err(), "{cut}");
    }
    let deep = r#"{"x":[{"a":[{},[],"\"]}"]},-1.5e3,null],"id":1}"#;
    assert!(Document::read(deep, &FieldSet::of([&id])).is_ok());
}
