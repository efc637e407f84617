//! Parts that may be missing: a missing part is hashed differently from all values.

use std::collections::BTreeMap;

use lambda_idempotency_keys::{Document, Expression, SelectionError};
use proptest::prelude::*;

use crate::{
    json::{Json, json},
    support::{cases, selected},
};

fn with_optional(expression: &str, names: &[&str], json: &str) -> Result<String, SelectionError> {
    let expression =
        Expression::compile(expression).unwrap().optional(names.iter().copied()).unwrap();
    let selection = expression.select(&Document::parse(json).unwrap())?;
    Ok(String::from_utf8(selection.canonical_bytes().to_vec()).unwrap())
}

#[test]
fn optional_parts_may_be_missing_and_others_must_be_present() {
    let both: &[&str] = &["a", "b.c"];
    for (json, list, object) in [
        (r#"{"a":1,"b":{"c":"x"}}"#, Ok(r#"[1,"x"]"#), Ok(r#"{"a":1,"c":"x"}"#)),
        (r#"{"a":1}"#, Ok("[1,~]"), Ok(r#"{"a":1,"c":~}"#)),
        (r#"{"a":1,"b":{"c":null}}"#, Ok("[1,~]"), Ok(r#"{"a":1,"c":~}"#)),
        (r#"{"a":1,"b":{"c":""}}"#, Ok(r#"[1,""]"#), Ok(r#"{"a":1,"c":""}"#)),
        (r#"{"b":{"c":[]},"a":false}"#, Ok("[false,[]]"), Ok(r#"{"a":false,"c":[]}"#)),
        (r#"{"b":{"c":"~"}}"#, Ok(r#"[~,"~"]"#), Ok(r#"{"a":~,"c":"~"}"#)),
        ("{}", Err(SelectionError::AllMissing), Err(SelectionError::AllMissing)),
        (r#"{"a":"","b":{}}"#, Err(SelectionError::AllMissing), Err(SelectionError::AllMissing)),
        ("null", Err(SelectionError::Missing), Err(SelectionError::Missing)),
    ] {
        assert_eq!(with_optional("[a, b.c]", both, json), list.map(str::to_owned), "{json}");
        let object_of = with_optional("{a: a, c: b.c}", &["a", "c"], json);
        assert_eq!(object_of, object.map(str::to_owned), "{json}");
    }
    let missing = |part: &str| Err(SelectionError::PartMissing { part: part.to_owned() });
    assert_eq!(with_optional("[a, b]", &["b"], r#"{"b":1}"#), missing("1"));
    assert_eq!(with_optional("x.[a, b]", &["b"], r#"{"x":{"a":1}}"#).unwrap(), "[1,~]");
    assert_eq!(with_optional("x | {a: a, b: b}", &["a"], r#"{"x":{"a":1}}"#), missing("`b`"));
    // A list inside an optional part is whole, if the part is there.
    let nested = "[id, part.[a, b]]";
    assert!(Expression::compile(nested).unwrap().optional(["part"]).is_err());
    let nested = "{id: id, part: part.[a, b]}";
    assert_eq!(
        with_optional(nested, &["part"], r#"{"id":1,"part":{"a":1}}"#),
        missing("`part`, 2")
    );
    assert_eq!(with_optional(nested, &["part"], r#"{"id":1}"#).unwrap(), r#"{"id":1,"part":~}"#);
}

#[test]
fn parts_that_are_not_listed_cannot_be_optional() {
    for (expression, name, part) in [
        ("[a, b.c]", "c", "it lists `a`, `b.c`"),
        ("{x: a}", "a", "it lists `x`"),
        ("a", "a", "write it as"),
        ("items[*].[a, b]", "a", "write it as"),
    ] {
        let error = Expression::compile(expression).unwrap().optional([name]).unwrap_err();
        assert!(error.reason().contains(part), "{error}");
        assert!(error.reason().contains(&format!("`{name}`")), "{error}");
    }
}

/// Any combination of three parts, each present or not.
fn event() -> impl Strategy<Value = BTreeMap<String, Json>> {
    prop::collection::btree_map("[abc]", json(), 0..4)
}

proptest! {
    #![proptest_config(cases(512))]

    /// JMESPath treats null as missing; all other differences give another key.
    #[test]
    fn distinct_events_have_distinct_parts((one, other) in (event(), event())) {
        let present = |event: &BTreeMap<String, Json>| {
            let mut event = event.clone();
            event.retain(|_, value| *value != Json::Null);
            event
        };
        let key = |event: &BTreeMap<String, Json>| {
            with_optional("[a, b, c]", &["a", "b", "c"], &Json::Object(event.clone()).written(0))
        };
        match (key(&one), key(&other)) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a == b, present(&one) == present(&other)),
            (Err(error), _) | (_, Err(error)) => prop_assert_eq!(error, SelectionError::AllMissing),
        }
    }

    /// An event with all parts has the same key as if none were optional.
    #[test]
    fn complete_events_keep_their_keys(event in event(), style in any::<u64>()) {
        let (plain, styled) =
            (Json::Object(event.clone()).written(0), Json::Object(event).written(style));
        if let Ok(strict) = selected("{x: a, y: b}", &plain) {
            prop_assert_eq!(with_optional("{x: a, y: b}", &["y"], &styled), Ok(strict));
        }
    }
}
