//! Distinct events never share a key.

use std::collections::BTreeMap;

use lambda_idempotency_keys::{Digest, KeyFormat, Scope};
use proptest::prelude::*;

use crate::{
    json::{Json, json},
    support::{cases, key, selected},
};

/// A value and a similar one.
fn lookalikes() -> impl Strategy<Value = (Json, Json)> {
    json().prop_flat_map(|value| {
        let text = value.written(0);
        let near = vec![
            Json::Text(text.clone()),
            Json::List(vec![value.clone()]),
            Json::List(vec![value.clone(), Json::Null]),
            Json::Object(BTreeMap::from([(text, value.clone())])),
            changed(&value),
        ];
        (Just(value), prop::sample::select(near))
    })
}

/// The value with one thing in it changed.
fn changed(value: &Json) -> Json {
    match value {
        Json::Null => Json::Bool(false),
        Json::Bool(value) => Json::Bool(!value),
        Json::Integer(value) if *value > 0 => Json::Integer(value - 1),
        Json::Integer(value) => Json::Integer(value + 1),
        Json::Text(text) => Json::Text(format!("{text}\0")),
        Json::List(items) => match items.split_first() {
            Some((first, rest)) => {
                Json::List(std::iter::once(changed(first)).chain(rest.iter().cloned()).collect())
            }
            None => Json::List(vec![Json::Null]),
        },
        Json::Object(members) => {
            let mut members = members.clone();
            match members.pop_first() {
                Some((name, value)) => members.insert(name, changed(&value)),
                None => members.insert(String::new(), Json::Null),
            };
            Json::Object(members)
        }
    }
}

fn distinct(one: &Json, other: &Json) -> Result<(), TestCaseError> {
    if one == other || one.is_empty() || other.is_empty() {
        return Ok(());
    }
    let (one, other) = (one.written(0), other.written(0));
    prop_assert_ne!(selected("@", &one).unwrap(), selected("@", &other).unwrap());
    prop_assert_ne!(key("@", &one).unwrap(), key("@", &other).unwrap());
    Ok(())
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn values_that_look_alike((one, other) in lookalikes()) {
        distinct(&one, &other)?;
    }

    /// Neither the borders of parts nor their number can be confused.
    #[test]
    fn lists_of_parts(
        one in prop::collection::vec("[a\0]{0,3}", 0..4),
        other in prop::collection::vec("[a\0]{0,3}", 0..4),
    ) {
        let digest = |parts: &[String]| {
            let mut digest = Digest::new(b"test");
            parts.iter().for_each(|part| digest.part(part.as_bytes()));
            digest.hex()
        };
        prop_assert_eq!(one == other, digest(&one) == digest(&other));
        let identity = |parts: &[String]| {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            KeyFormat::Hashed.identity(&Scope { operation: "op", tenant: None }, &parts)
        };
        prop_assert_eq!(one == other, identity(&one) == identity(&other));
    }
}
