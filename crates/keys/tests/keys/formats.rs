//! Keys of every format: hashed, readable, with a secret.

use lambda_idempotency_keys::{Document, Expression, Key, KeyFormat, Scope, Secret};
use proptest::prelude::*;

use crate::{
    json::{Json, json},
    support::{cases, select},
};

fn secret(text: &str) -> KeyFormat {
    KeyFormat::Secret(Secret::new(text).unwrap())
}

fn formats() -> Vec<KeyFormat> {
    vec![
        KeyFormat::Hashed,
        KeyFormat::Readable,
        secret("the first secret"),
        secret("the other secret"),
    ]
}

/// Short strings and numbers that look alike, alone and in lists, as in most keys.
fn part() -> impl Strategy<Value = Json> {
    let scalar = || {
        prop_oneof![
            "[a+~/=@1,\"-]{1,3}".prop_map(Json::Text),
            "[a1]{1,2}".prop_map(Json::Text),
            (-2..12_i128).prop_map(Json::Integer),
            any::<bool>().prop_map(Json::Bool),
            prop::sample::select(vec!["true", "1", "-1", "null", "~"])
                .prop_map(|text| Json::Text(text.to_owned())),
        ]
    };
    prop_oneof![
        scalar(),
        prop::collection::vec(scalar(), 1..4).prop_map(Json::List),
        prop::collection::btree_map("[a=/]{1,2}", scalar(), 1..3).prop_map(Json::Object),
        json(),
    ]
}

fn key(format: &KeyFormat, tenant: Option<&str>, value: &Json) -> Option<Key> {
    let scope = Scope { operation: "op", tenant };
    Some(format.key(&scope, &select("@", &value.written(0)).ok()?))
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn distinct_values_have_distinct_keys_in_every_format(
        (one, other) in (part(), part()),
        (tenant, another) in (prop::option::of("[a@=]{0,2}"), prop::option::of("[a@=]{0,2}")),
    ) {
        let same = one == other && tenant == another;
        for format in formats() {
            let pair = (key(&format, tenant.as_deref(), &one), key(&format, another.as_deref(), &other));
            if let (Some(one), Some(other)) = pair {
                prop_assert_eq!(same, one == other);
                prop_assert_eq!(same, one.hash() == other.hash());
                prop_assert_eq!(same, one.to_string() == other.to_string());
            }
        }
    }

    /// Keys with a secret never equal other keys, and readable keys never equal hashed ones.
    #[test]
    fn keys_of_different_formats_are_never_equal((one, other) in (part(), part())) {
        let formats = formats();
        for (at, format) in formats.iter().enumerate() {
            for another in formats.iter().skip(at + 1) {
                let (Some(a), Some(b)) = (key(format, None, &one), key(another, None, &other)) else {
                    continue;
                };
                // `Readable` hashes unsafe parts, so the key can equal that of `Hashed`.
                let fallen_back = matches!((format, another), (KeyFormat::Hashed, KeyFormat::Readable))
                    && one == other && !b.as_str().contains('~');
                prop_assert_eq!(a == b, fallen_back);
                prop_assert_eq!(a.hash() == b.hash(), fallen_back);
            }
        }
    }

    /// Logs do not show the content of a readable key.
    #[test]
    fn logs_show_a_hash(id in "[a-zA-Z0-9._:-]{3,40}") {
        let key = key(&KeyFormat::Readable, None, &Json::Text(id.clone())).unwrap();
        prop_assert_eq!(key.as_str(), format!("op#~={id}"));
        prop_assert!(key.hash().len() == 64 && key.hash().bytes().all(|b| b.is_ascii_hexdigit()));
        for shown in [key.to_string(), format!("{key:?}")] {
            prop_assert!(shown.contains(key.hash()) && !shown.contains('~'));
        }
        prop_assert_eq!(Key::from_text(key.as_str()), key);
    }
}

/// Keys of scheme 1, as another implementation computes them (Python's `hashlib` and `hmac`).
#[test]
fn golden_keys() {
    let parts = Expression::compile("[tenant, order.id, coupon]").unwrap();
    let parts = parts.optional(["coupon"]).unwrap();
    let document = Document::parse(r#"{"tenant":"acme","order":{"id":42}}"#).unwrap();
    let selection = parts.select(&document).unwrap();
    assert_eq!(selection.canonical_bytes(), br#"["acme",42,~]"#);
    let tenants = Scope { operation: "op", tenant: Some("t-1") };
    let scope = Scope { operation: "op", tenant: None };
    let with_secret = secret("4f1f5c0e2b7d49a8");
    // Longer than a block of SHA-256.
    let with_long_secret = secret(&"4f1f5c0e2b7d49a8".repeat(5));
    for (format, scope, expected) in [
        (
            &KeyFormat::Hashed,
            &scope,
            "op#44f7f1fb1c7647610ffcd11f69f2f87540ba111b48d01ec985ed4a3f46ba7266",
        ),
        (
            &KeyFormat::Hashed,
            &tenants,
            "op#e16d74802efbfea7aca5107f80f714d3d3e100cef425c82e58a91259b7a82cb0",
        ),
        (&KeyFormat::Readable, &scope, "op#~/acme/+42/~"),
        (&KeyFormat::Readable, &tenants, "op#~@t-1/acme/+42/~"),
        (
            &with_secret,
            &scope,
            "op#hmac-07a0de8e98214a0bef1f6802d38b00b9d11f9db55a7ebdfda5ff47d5822a3112",
        ),
        (
            &with_secret,
            &tenants,
            "op#hmac-f12f208a6489ce3b97cb4be0fab6d5034149fa7cfcee2e549e83e2b11d1d7d78",
        ),
        (
            &with_long_secret,
            &scope,
            "op#hmac-6e4dbbf4d8fb89ff6b396ae86107800d7bef0a1845bd6582c656e43b89a4b9cc",
        ),
    ] {
        assert_eq!(format.key(scope, &selection).as_str(), expected);
    }
    let identity = ["sqs", "arn:aws:sqs:eu-west-1:123456789012:orders", "m-1"];
    let [readable, hashed] = [KeyFormat::Readable, KeyFormat::Hashed];
    assert_eq!(readable.identity(&scope, &identity), hashed.identity(&scope, &identity));
    assert_eq!(
        with_secret.identity(&scope, &identity).as_str(),
        "op#hmac-f9149c7b9383657ecbfd4cef1ea429d6c2cdc66f769436d8fad7d38bf3916329"
    );
    let readable = KeyFormat::Readable.key(&scope, &selection);
    assert_eq!(readable.hash(), "c9f537944c62ffd54202891bd6959b20ba23cf4bb01874940d2096c64219c1dc");
}
