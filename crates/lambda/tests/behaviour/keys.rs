//! How keys are made: optional parts, functions, readable keys and keys with a secret.

use lambda_idempotency::{
    ConfigError, Operation, inspect,
    keys::{Functions, KeyFormat},
    payload,
    powertools::PowertoolsKeys,
    record,
    source::Sqs,
};
use serde_json::Value;

use crate::{
    secrets_capture::Captured,
    support::{World, batch, with_body},
};

/// The keys of SQS messages with these bodies, as they are stored.
fn keys<const N: usize>(operation: &Operation, bodies: [&str; N]) -> [Option<String>; N] {
    bodies.map(|body| {
        let event = batch([with_body("m-1", body)]).to_string();
        let records = inspect::event(&event, Some(operation)).unwrap();
        let key = records[0].key.as_ref().unwrap();
        key.key.as_ref().ok().map(|key| key.as_str().to_owned())
    })
}

#[tokio::test]
async fn key_functions_can_be_user_defined() {
    let world = World::new();
    let lower = Functions::standard().with("lower", 1, |arguments| match arguments {
        [Value::String(text)] => Ok(text.to_lowercase().into()),
        _ => Err("it is not a string"),
    });
    let operation =
        Operation::new("invite").key("lower(id)").fingerprint("lower(do)").key_functions(lower);
    let function = world.on(Sqs::new(), &operation);
    let event = batch([
        with_body("m-1", r#"{"id":"Ann@Example.com","do":"x"}"#),
        with_body("m-2", r#"{"id":"ann@example.com","do":"X"}"#),
        with_body("m-3", r#"{"id":7,"do":"x"}"#),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-3"]);
    world.ledger.assert_each_once(["Ann@Example.com"]);
    let unknown = Operation::new("invite").key("lower(id)").check().unwrap_err();
    assert!(unknown.to_string().contains("no function `lower`"), "{unknown}");
}

#[test]
fn readable_keys_are_used_only_for_safe_characters() {
    let operation = Operation::new("place").key("[tenant, id]").key_format(KeyFormat::Readable);
    let hashed = Operation::new("place").key("[tenant, id]");
    let bodies = [r#"{"tenant":"acme","id":42}"#, r#"{"tenant":"acme","id":"a b"}"#];
    let [safe, hashed_instead] = keys(&operation, bodies);
    assert_eq!(safe.as_deref(), Some("place#~/acme/+42"));
    assert_eq!(hashed_instead, keys(&hashed, bodies)[1]);
    // A record's own identity is hashed nevertheless.
    let identity = Operation::new("place").key_format(KeyFormat::Readable);
    assert_eq!(keys(&identity, ["{}"]), keys(&Operation::new("place"), ["{}"]));
}

/// Logs and errors do not contain readable keys.
#[tokio::test]
async fn readable_keys_are_not_logged() {
    let captured = Captured::default();
    let guard = captured.start();
    let world = World::new();
    let operation = Operation::new("place").key("id").key_format(KeyFormat::Readable);
    let idempotency =
        world.idempotency().with_log(lambda_idempotency::observe::TracingObserver::new());
    let function = idempotency.on(Sqs::new(), &operation, world.handler()).unwrap();
    for action in ["fail", "", ""] {
        let event =
            batch([with_body("m-1", &format!("{{\"id\":\"s3cr3t-id\",\"do\":\"{action}\"}}"))]);
        let answer = world.invoke(&function, &event).await;
        captured.add(&format!("{answer:?}"));
    }
    drop(guard);
    // The handler's own error contains the id, which is allowed.
    let text = captured.text().replace("s3cr3t-id has no luck", "");
    assert!(text.contains("key_hash"), "{text}");
    assert!(!text.contains("s3cr3t"), "{text}");
}

#[test]
fn keys_with_different_secrets_differ() {
    let by_mail = || Operation::new("invite").key("email");
    let body = r#"{"email":"ann@example.com"}"#;
    let secrets = ["correct horse battery", "another horse battery"];
    let [plain] = keys(&by_mail(), [body]);
    let [one, other] = secrets.map(|secret| {
        let operation = by_mail().key_format(KeyFormat::secret(secret).unwrap());
        assert!(!format!("{operation:?}").contains("horse"));
        let [key] = keys(&operation, [body]);
        let [again] = keys(&operation, [body]);
        assert_eq!(again, key, "the same each time");
        key
    });
    assert!(one.as_ref().is_some_and(|key| key.starts_with("invite#hmac-")));
    assert!(one != other && one != plain && other != plain);
    let identity = |operation: Operation| keys(&operation, ["{}"]);
    let with_secret =
        identity(Operation::new("invite").key_format(KeyFormat::secret(secrets[0]).unwrap()));
    assert_ne!(with_secret, identity(Operation::new("invite")));
}

/// Without a secret, the amount could be found from its fingerprint by trying amounts.
#[test]
fn fingerprints_are_made_with_the_secret() {
    let event = batch([with_body("m-1", r#"{"id":"a","amount":5}"#)]).to_string();
    let by_amount = || Operation::new("pay").key("id").fingerprint("amount");
    let fingerprint = |operation: Operation| {
        let records = inspect::event(&event, Some(&operation)).unwrap();
        records[0].key.as_ref().unwrap().fingerprint.clone().unwrap()
    };
    let with = |secret: &str| by_amount().key_format(KeyFormat::secret(secret).unwrap());
    let one = fingerprint(with("correct horse battery"));
    assert_eq!(fingerprint(with("correct horse battery")), one);
    assert_ne!(fingerprint(with("another horse battery")), one);
    assert_ne!(fingerprint(by_amount()), one);
}
#[test]
fn mistakes_are_found_when_the_function_starts() {
    let by_id = || Operation::new("op").key("[id, tenant]");
    let optional = |path, part| Operation::new("op").key(payload(path).optional([part]));
    let secret = "correct horse battery";
    for (operation, part) in [
        (optional("[id, tenant]", "coupon"), "it lists `id`, `tenant`"),
        (optional("id", "id"), "write it as `[a, b]`"),
        (
            by_id()
                .key_format(KeyFormat::secret(secret).unwrap())
                .powertools(PowertoolsKeys::python("p")),
            "the keys of another library",
        ),
        (
            by_id().key_format(KeyFormat::Readable).powertools(PowertoolsKeys::python("p")),
            "the keys of another library",
        ),
        (
            optional("[id, tenant]", "id").powertools(PowertoolsKeys::python("p")),
            "the keys of another library",
        ),
    ] {
        let error = operation.check().unwrap_err();
        assert!(matches!(error, ConfigError::Key(_)), "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(!format!("{error:?}").contains("horse"));
    }
    let short = KeyFormat::secret("horse").unwrap_err().to_string();
    assert!(short.contains("has 5 bytes") && !short.contains("horse"), "{short}");
}

#[test]
fn expressions_that_can_merge_keys_are_warned_about_at_start() {
    let captured = Captured::default();
    let guard = captured.start();
    for key in ["join('-', [tenant, id])", "[tenant, id]", "to_string(id)"] {
        let operation = Operation::new("place").key(key);
        operation.check().unwrap();
        operation.check().unwrap();
    }
    drop(guard);
    let text = captured.text();
    let warnings: Vec<_> = text.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 2, "{text}");
    assert!(warnings[0].contains("`join` at offset 4"), "{text}");
    assert!(warnings[0].contains("operation=\"place\""), "{text}");
    assert!(warnings[1].contains("`to_string` at offset 9"), "{text}");
}

/// A mistake in a part that no expression reads does not make a record bad.
#[tokio::test]
async fn only_the_parts_that_expressions_read_must_be_valid() {
    let world = World::new();
    let operation = Operation::new("place").key("id");
    let queue = Sqs::new().fingerprint(record("messageId"));
    let function = world.with_handler(queue, &operation, world.raw_handler());
    let body = |name: &str| format!(r#"{{"id":"a","{name}":1,"{name}":2}}"#);
    let event = batch([with_body("m-1", &body("beside")), with_body("m-2", &body("id"))]);
    assert_eq!(world.returned(&function, &event).await, ["m-2"]);
    assert_eq!(world.ledger.entry(&body("beside")).executions.len(), 1);
}
