//! Work that one side has completed: the other answers from it, whatever the key is made of, until it expires, and refuses
//! another payload under the same key.

use lambda_idempotency::RunError;
use lambda_idempotency_local::Table;

use crate::{
    Language, Shared, TABLE,
    ours::{assert_executed, assert_replayed},
    theirs::{Call, Form, Settings, executed, refused, replayed},
};

const EVENT: &str = r#"{"id": "A-1"}"#;

/// Events that are the same work by these settings, and a result.
struct Case {
    what: &'static str,
    settings: Settings,
    event: &'static str,
    result: &'static str,
}

fn cases() -> Vec<Case> {
    let by = |what, key, event, result| Case { what, settings: Settings::by(key), event, result };
    let whole = |what, event, result| Case { what, settings: Settings::whole(), event, result };
    vec![
        by("plain", "id", r#"{"id": "A-1", "at": 1}"#, r#"{"ok": true, "z": [1, 2.5], "a": null}"#),
        by(
            "nested",
            "order.lines[0].sku",
            r#"{"order": {"lines": [{"sku": "mug"}]}}"#,
            r#""placed""#,
        ),
        by(
            "unicode",
            "order.\"größe\"",
            r#"{"order": {"größe": "sehr groß 😀 漢字 \u2028"}}"#,
            r#"{"größe": "😀"}"#,
        ),
        by("an integer", "id", r#"{"id": 42}"#, "12.5"),
        by("a fraction", "id", r#"{"id": 1.50}"#, "[1]"),
        by("a small number", "id", r#"{"id": 1.5e-7}"#, r#""42""#),
        by("a large number", "id", r#"{"id": 123456789012.5}"#, "null"),
        by("the largest integer of TypeScript", "id", r#"{"id": 9007199254740991}"#, "true"),
        by(
            "several parts",
            "[tenant, order.id]",
            r#"{"tenant": "acme", "order": {"id": 7}}"#,
            r#"[{"nested": {"deep": ["x"]}}]"#,
        ),
        by("named parts", "{b: id, a: n}", r#"{"id": "A-1", "n": 2.5}"#, r#"{"ok": true}"#),
        by(
            "names in any order",
            "id",
            r#"{"id": {"b": 1, "B": [2, {"é": "ü"}], "10": "ten", "9": "nine"}}"#,
            r#"{"ok": true}"#,
        ),
        by(
            "nested JSON",
            "powertools_json(body).[user, amount]",
            r#"{"body": "{\"user\": \"é\", \"amount\": 10.50}"}"#,
            r#"{"ok": true}"#,
        ),
        by(
            "Base64",
            "powertools_json(powertools_base64(data)).user",
            r#"{"data": "eyJ1c2VyIjoieHl6In0="}"#,
            r#"{"ok": true}"#,
        ),
        whole(
            "the whole payload",
            r#"{"z": {"b": [{"y": 2, "x": 1.0}], "a": "é"}, "A": true}"#,
            r#"{"ok": true}"#,
        ),
        whole("a payload that is a text", r#""héllo""#, r#"{"ok": true}"#),
        Case {
            what: "SHA-256",
            settings: Settings { hash: "sha256", ..Settings::by("id") },
            event: r#"{"id": "A-1"}"#,
            result: r#"{"ok": true}"#,
        },
        Case {
            what: "the default prefix of a function",
            settings: Settings { prefix: None, ..Settings::by("id") },
            event: r#"{"id": "A-1"}"#,
            result: r#"{"ok": true}"#,
        },
        Case {
            what: "the default prefix of a handler",
            settings: Settings { prefix: None, form: Form::Handler, ..Settings::whole() },
            event: r#"{"detail": {"id": "A-1"}}"#,
            result: r#"{"statusCode": 200, "body": "placed"}"#,
        },
    ]
}

/// Completions answer calls of both sides. Key, status, result and fingerprint are the same, byte for byte, whoever
/// completed the work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_side_completed_is_not_done_again_by_the_other() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        for Case { what, mut settings, event, result } in cases() {
            println!("{language:?}: {what}");
            settings.validation = Some("@");
            assert_eq!(shared.theirs.call(&settings, Call::new(event, result)), executed(result));
            let theirs = shared.item();
            assert_replayed(shared.ours.run(&settings, event, "\"ours\"").await, result);
            assert_eq!(shared.theirs.call(&settings, Call::new(event, "1")), replayed(result));
            shared.empty();
            assert_executed(shared.ours.run(&settings, event, result).await, result);
            let ours = shared.item();
            assert_eq!(shared.theirs.call(&settings, Call::new(event, "1")), replayed(result));
            assert_replayed(shared.ours.run(&settings, event, "\"again\"").await, result);
            shared.empty();
            for attribute in ["id", "status", "data", "validation"] {
                assert_eq!(ours[attribute], theirs[attribute], "{attribute}");
            }
            let expires = |item: &serde_json::Value| -> i64 {
                item["expiration"]["N"].as_str().unwrap().parse().unwrap()
            };
            assert!((expires(&ours) - expires(&theirs)).abs() <= 30, "{ours} {theirs}");
        }
    }
}

/// In a table whose partition holds other items, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completions_in_a_table_with_a_sort_key_count() {
    const BY_THEM: &str = r#"{"id": "by them"}"#;
    const BY_US: &str = r#"{"id": "by us"}"#;
    let settings = Settings { sort_key: Some("sk"), ..Settings::by("id") };
    for language in Language::BOTH {
        let mut shared = Shared::with_table(language, &Table::new(TABLE, "id").sort("sk")).await;
        assert_eq!(shared.theirs.call(&settings, Call::new(BY_THEM, "1")), executed("1"));
        assert_replayed(shared.ours.run(&settings, BY_THEM, "2").await, "1");
        assert_executed(shared.ours.run(&settings, BY_US, "1").await, "1");
        assert_eq!(shared.theirs.call(&settings, Call::new(BY_US, "2")), replayed("1"));
    }
}

/// The default prefix of a method with TypeScript's decorator does not contain the method's name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decorated_method_has_the_prefix_of_its_function() {
    let settings = Settings { prefix: None, form: Form::Method, ..Settings::by("id") };
    let mut shared = Shared::new(Language::TypeScript).await;
    assert_eq!(shared.theirs.call(&settings, Call::new(EVENT, "1")), executed("1"));
    assert_replayed(shared.ours.run(&settings, EVENT, "2").await, "1");
}

const EXPIRES: u64 = 3600;
/// In milliseconds. Before `EXPIRES`, by more than Powertools rounds; and after it, by more than clocks may differ.
const BEFORE: i64 = 3_590_000;
const AFTER: i64 = 3_603_000;

fn expiring() -> Settings {
    Settings { expires: EXPIRES, ..Settings::by("id") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_side_completed_is_done_again_by_the_other_when_it_has_expired() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        assert_eq!(shared.theirs.call(&expiring(), Call::new(EVENT, "1")), executed("1"));
        assert_replayed(shared.ours.after(BEFORE).run(&expiring(), EVENT, "2").await, "1");
        assert_executed(shared.ours.after(AFTER).run(&expiring(), EVENT, "2").await, "2");
        shared.empty();
        assert_executed(shared.ours.after(-BEFORE).run(&expiring(), EVENT, "1").await, "1");
        assert_eq!(shared.theirs.call(&expiring(), Call::new(EVENT, "2")), replayed("1"));
        shared.empty();
        assert_executed(shared.ours.after(-AFTER).run(&expiring(), EVENT, "1").await, "1");
        assert_eq!(shared.theirs.call(&expiring(), Call::new(EVENT, "2")), executed("2"));
    }
}

/// What is validated, an event, and an event with another value there.
const VALIDATED: [[&str; 3]; 4] = [
    ["amount", r#"{"id": 1, "amount": 12.50}"#, r#"{"id": 1, "amount": 12.51}"#],
    [
        "[to, amount]",
        r#"{"id": 1, "to": "é", "amount": 1}"#,
        r#"{"id": 1, "to": "è", "amount": 1}"#,
    ],
    [
        "order.lines",
        r#"{"id": 1, "order": {"lines": [{"n": 1}]}}"#,
        r#"{"id": 1, "order": {"lines": [{"n": 2}]}}"#,
    ],
    ["@", r#"{"id": 1}"#, r#"{"id": 1, "note": "x"}"#],
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_payload_is_refused_on_either_side() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        for [validation, event, other] in VALIDATED {
            println!("{language:?}: {validation}");
            let settings = Settings { validation: Some(validation), ..Settings::by("id") };
            assert_eq!(shared.theirs.call(&settings, Call::new(event, "1")), executed("1"));
            assert_replayed(shared.ours.run(&settings, event, "2").await, "1");
            let answer = shared.ours.run(&settings, other, "2").await;
            assert!(matches!(answer, Err(RunError::Mismatch)), "{answer:?}");
            shared.empty();
            assert_executed(shared.ours.run(&settings, event, "1").await, "1");
            assert_eq!(shared.theirs.call(&settings, Call::new(event, "2")), replayed("1"));
            let answer = shared.theirs.call(&settings, Call::new(other, "2"));
            assert_eq!(answer, refused("IdempotencyValidationError"));
            shared.empty();
        }
    }
}
