//! Records that look alike have distinct keys, or no key.

use std::collections::BTreeMap;

use lambda_idempotency_keys::{Document, Expression, Key, KeyFormat, Scope, Secret};
use proptest::prelude::*;

use crate::support::{cases, key, select, selected};

/// Each record has a key, and no two have the same key.
fn all_distinct(expression: &str, records: &[&str]) {
    let mut seen = BTreeMap::new();
    for record in records {
        let other = seen.insert(key(expression, record).unwrap(), record);
        assert_eq!(other, None, "`{expression}` has the same key for {record}");
    }
}

#[test]
fn values_of_different_kinds() {
    all_distinct(
        "@",
        &[
            "0",
            "0.0",
            "-0",
            "false",
            "\"0\"",
            "\"false\"",
            "[0]",
            "[[0]]",
            "[false]",
            "[null]",
            "\"null\"",
            "\"[0]\"",
            "[\"0\"]",
            "{\"0\":0}",
            "{\"0\":null}",
            "{\"\":0}",
            "\"{}\"",
            "\"[]\"",
            "\"\\\"\\\"\"",
            "[\"\"]",
            "[[]]",
            "[{}]",
            "{\"\":\"\"}",
            "\"~\"",
            "[\"~\"]",
        ],
    );
    all_distinct("@", &["1", "1.0", "1.5", "\"1\"", "\"1.0\"", "\"1e0\"", "true", "-1"]);
    all_distinct("@", &["9007199254740992", "9007199254740993", "9007199254740991.0"]);
}

/// Numbers that are written in several ways, and numbers that are refused because others are too close.
#[test]
fn equal_numbers_written_differently_and_close_numbers() {
    for same in [["1.0", "1.00"], ["1.0", "10e-1"], ["0.1", "1E-1"], ["-0", "-0.0"]] {
        let [one, other] = same.map(|numeral| selected("@", numeral).unwrap());
        assert_eq!(one, other, "{same:?}");
    }
    for refused in ["1e400", "-1e400", "1e-400", "0.1000000000000000055", "1e16", "-1e16"] {
        let read = Document::parse(&format!("{{\"n\":{refused}}}"));
        let selected = read.map(|document| Expression::compile("n").unwrap().select(&document));
        assert!(!matches!(selected, Ok(Ok(_))), "{refused}: {selected:?}");
    }
}

/// Strings are compared by bytes: case, space and Unicode forms are not normalised.
#[test]
fn texts_that_look_the_same() {
    all_distinct(
        "@",
        &[
            "\"\u{e9}\"",   // é, composed
            "\"e\u{301}\"", // é, decomposed
            "\"E\u{301}\"", // É
            "\"\u{212b}\"", // the Ångström sign
            "\"\u{c5}\"",   // and Å
            "\"\u{ff11}\"", // full-width 1
            "\"a\"",        // Latin
            "\"\u{430}\"",  // Cyrillic
            "\"a \"",
            "\" a\"",
            "\"a\u{a0}\"",
            "\"a\u{200b}\"",
            "\"A\"",
            "\"a\\u0000\"",
            "\"\\u0000\"",
            "\"\\\\u0000\"",
            "\"0000\"",
            "\"u0000\"",
            "\"\\n\"",
            "\"\\r\\n\"",
            "\"\\\\n\"",
            "\"\u{fffd}\"",
            "\"\u{feff}a\"",
        ],
    );
    let escaped = [r#""\u00e9\u0041\/\ud83d\ude00\t""#, "\"\u{e9}A/\u{1f600}\\u0009\""];
    let [one, other] = escaped.map(|text| selected("@", text).unwrap());
    assert_eq!(one, other, "an escaped character equals the character");
}

#[test]
fn names_of_members_too() {
    all_distinct(
        "@",
        &[
            "{\"\u{e9}\":1}",
            "{\"e\u{301}\":1}",
            "{\"a\":1,\"b\":2}",
            "{\"a\":2,\"b\":1}",
            "{\"a\\\":1,\\\"b\":2}",
            "{\"a:1,b\":2}",
            "{\"a\":{\"b\":1}}",
            "{\"a\":[{\"b\":1}]}",
            "{\"a.b\":1}",
            "{\"a\":1}",
            "{\"a\":1,\"b\":null}",
            "{\"a\":1,\"\":null}",
            "{\"a\\u0000\":1}",
        ],
    );
}

/// The limits between parts count: text that moves from one part to the next changes the key.
#[test]
fn text_that_moves_between_parts() {
    all_distinct(
        "[a, b]",
        &[
            r#"{"a":"x","b":"yz"}"#,
            r#"{"a":"xy","b":"z"}"#,
            r#"{"a":"yz","b":"x"}"#,
            r#"{"a":["x"],"b":"yz"}"#,
            r#"{"a":["x","yz"],"b":["x"]}"#,
            r#"{"a":["x"],"b":["yz","x"]}"#,
            r#"{"a":"x\",\"y","b":"z"}"#,
            r#"{"a":"x","b":"y\",\"z"}"#,
            r#"{"a":1,"b":23}"#,
            r#"{"a":12,"b":3}"#,
            r#"{"a":1,"b":"23"}"#,
            r#"{"a":1,"b":[2,3]}"#,
            r#"{"a":[1,2],"b":3}"#,
            r#"{"a":[1,[2]],"b":3}"#,
            r#"{"a":[[1],2],"b":3}"#,
            r#"{"a":"~","b":"x"}"#,
        ],
    );
    let both = [("[a]", r#"{"a":["x"]}"#), ("a", r#"{"a":["x"]}"#), ("{a: a}", r#"{"a":["x"]}"#)]
        .map(|(expression, record)| selected(expression, record).unwrap());
    assert!(both[0] != both[1] && both[1] != both[2] && both[0] != both[2], "{both:?}");
}

/// An operation, a tenant and a value, made of the characters that separate the parts of keys.
fn scoped() -> impl Strategy<Value = (String, Option<String>, String)> {
    let value = prop_oneof![
        "[a~#=/@+1]{1,3}".prop_map(|text| format!("{text:?}")),
        "[a1]{1,2}".prop_map(|text| format!("{text:?}")),
        "[1-9]{1,2}",
        "[1-9]{1,2}".prop_map(|number| format!("[{number}]")),
        "[a~#=/@+1]{1,2}".prop_map(|text| format!("{{{text:?}:1}}")),
        "[a1]{1,2}".prop_map(|text| format!("{{{text:?}:{text:?}}}")),
    ];
    ("[a~#=/@+1]{0,4}", prop::option::of("[a~#=/@+1]{0,3}"), value)
}

proptest! {
    #![proptest_config(cases(2048))]

    /// Operation, tenant and value are combined in one text, in which they cannot be confused.
    #[test]
    fn operations_tenants_and_values(one in scoped(), other in scoped()) {
        let secret = KeyFormat::Secret(Secret::new("a secret of tests").unwrap());
        for format in [KeyFormat::Hashed, KeyFormat::Readable, secret] {
            let [a, b] = [&one, &other].map(|(operation, tenant, value)| {
                let scope = Scope { operation, tenant: tenant.as_deref() };
                format.key(&scope, &select("@", value).unwrap())
            });
            prop_assert_eq!(one == other, a == b, "{} and {}", a.as_str(), b.as_str());
            prop_assert_eq!(one == other, a.hash() == b.hash());
            prop_assert_eq!(Key::from_text(a.as_str()), a);
        }
    }
}
