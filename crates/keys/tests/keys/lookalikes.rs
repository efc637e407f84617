//! Records that look alike have distinct keys, or no key.

use std::collections::BTreeMap;

use lambda_idempotency_keys::{Key, KeyFormat, Scope, Secret};
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
