//! Keys must never change, because records in users' tables are found by them.

use lambda_idempotency_keys::{KeyFormat, Scope};

use crate::support::{key, selected};

const ORDER: &str = r#"{
    "tenant": "acme", "order": {"id": 42, "lines": [{"sku": "b", "n": 2}, {"sku": "a", "n": 1.5}]},
    "body": "{\"id\":\"7\",\"price\":0.1,\"big\":18446744073709551615}", "zero": 0, "minus": -0.0
}"#;

/// The selections are the same for all features of `serde_json`.
#[test]
fn selections() {
    for (expression, expected) in [
        ("tenant", r#""acme""#),
        ("order.id", "42"),
        ("[tenant, order.id]", r#"["acme",42]"#),
        ("{id: order.id, by: tenant}", r#"{"by":"acme","id":42}"#),
        ("order", r#"{"id":42,"lines":[{"n":2,"sku":"b"},{"n":1.5e0,"sku":"a"}]}"#),
        ("order.lines[*].sku", r#"["b","a"]"#),
        ("order.lines[-1].n", "1.5e0"),
        ("order.lines[*].[sku, n] | [0]", r#"["b",2]"#),
        ("not_null(coupon, order.id)", "42"),
        ("json(body)", r#"{"big":18446744073709551615,"id":"7","price":1e-1}"#),
        ("json(body).big", "18446744073709551615"),
        ("[zero, minus]", "[0,-0e0]"),
    ] {
        assert_eq!(selected(expression, ORDER).as_deref(), Ok(expected), "{expression}");
    }
}

/// SHA-256 over parts with their lengths, as another implementation computes it.
#[test]
fn keys() {
    let whole = "op#8d594793873dda51cb901616454ce7904a7c01e332fdfd3b27856a4436020d09";
    assert_eq!(key("@", ORDER).unwrap().as_str(), whole);
    let scope = Scope { operation: "op", tenant: None };
    assert_eq!(
        KeyFormat::Hashed.identity(&scope, &["sqs", "arn", "m-1"]).as_str(),
        "op#61fd76b976e5234f3c74bbeede285f98841414def7390b440009679bc5125af4"
    );
    // The same bytes are another key as an identity, and as one of an empty tenant.
    let selected = key("tenant", ORDER).unwrap();
    let identity = KeyFormat::Hashed.identity(&scope, &["\"acme\""]);
    let of_tenant = Scope { tenant: Some(""), ..scope };
    let of_tenant = KeyFormat::Hashed.identity(&of_tenant, &["\"acme\""]);
    assert_ne!(selected, identity);
    assert_ne!(identity, of_tenant);
}

/// With the feature `arbitrary_precision`, `serde_json` reads an object with this member as a number.
#[test]
fn an_object_is_not_read_as_a_number() {
    let json = r#"{"id":{"$serde_json::private::Number":"5"}}"#;
    let expected = r#"[{"$serde_json::private::Number":"5"}]"#;
    assert_eq!(selected("[id]", json).unwrap(), expected);
}
