//! How keys are made: optional parts, functions, readable keys and keys with a secret.

use lambda_idempotency::{
    ConfigError, Operation,
    keys::{
        KeyFormat,
        inspect::{self, NoKey},
        payload,
        powertools::PowertoolsKeys,
        record,
    },
    policy::OnMissingKey,
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

/// A function for keys that no expression can select, with the errors of its records.
fn by_mail() -> Operation {
    Operation::new("invite").fingerprint("do").key_fn(|payload: &str| {
        let payload: Value = serde_json::from_str(payload).map_err(|_| "it is not JSON")?;
        match payload["id"].as_str() {
            Some("panics") => panic!("an index out of bounds"),
            Some("") => Ok(vec![String::new()]),
            Some("nobody") => Ok(vec![]),
            Some(mail) => Ok(vec![mail.to_lowercase()]),
            None => Err("it has no address"),
        }
    })
}

#[tokio::test]
async fn a_function_makes_keys_that_no_expression_can_select() {
    let world = World::new();
    let function = world.on(Sqs::new(), &by_mail());
    let event = batch([
        with_body("m-1", r#"{"id":"Ann@Example.com","do":"x"}"#),
        with_body("m-2", r#"{"id":"ann@example.com","do":"x"}"#),
        with_body("m-3", r#"{"id":"ANN@example.com","do":"y"}"#),
        with_body("m-4", r#"{"id":7,"do":"x"}"#),
        with_body("m-5", r#"{"id":"panics","do":"x"}"#),
        with_body("m-6", r#"{"id":"","do":"x"}"#),
        with_body("m-7", r#"{"id":"nobody","do":"x"}"#),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-3", "m-4", "m-5", "m-6", "m-7"]);
    world.ledger.assert_each_once(["Ann@Example.com"]);
}

#[test]
fn the_errors_of_a_key_function_are_its_fixed_texts() {
    let texts =
        [r#"{"id":7}"#, r#"{"id":"panics"}"#, r#"{"id":""}"#, r#"{"id":"nobody"}"#, "s3cr3t"];
    let errors = texts.map(|body| {
        let event = batch([with_body("m-1", body)]).to_string();
        let records = inspect::event(&event, Some(&by_mail())).unwrap();
        records[0].key.as_ref().unwrap().key.clone().unwrap_err().to_string()
    });
    for (error, part) in errors.iter().zip([
        "under `.key_fn(..)`: the function that makes it refuses the payload: it has no address",
        "refuses the payload: it panicked",
        "part 1 of it selects something empty",
        "it selects nothing (or null)",
        "it is not JSON",
    ]) {
        assert!(error.contains(part) && !error.contains("s3cr3t"), "{error}");
    }
    // A payload without a part has no key; one that is refused is bad.
    let unprotected = by_mail().on_missing_key(OnMissingKey::RunUnprotected);
    let key = |body: &str| {
        let event = batch([with_body("m-1", body)]).to_string();
        let records = inspect::event(&event, Some(&unprotected)).unwrap();
        records[0].key.as_ref().unwrap().key.clone().unwrap_err()
    };
    assert_eq!(key(r#"{"id":"nobody","do":1}"#), NoKey::Unprotected);
    assert!(matches!(key(r#"{"id":7,"do":1}"#), NoKey::Refused(_)));
}

/// Its keys are those of an expression that selects the same texts.
#[test]
fn a_function_makes_the_keys_of_an_expression_that_lists_its_parts() {
    let parts = || {
        Operation::new("place")
            .key_fn(|payload: &str| Ok(payload.split(' ').map(str::to_owned).collect()))
    };
    let expression = || Operation::new("place").key("[a, b]");
    for format in [KeyFormat::Hashed, KeyFormat::Readable, KeyFormat::secret([7; 32]).unwrap()] {
        let of_function = keys(&parts().key_format(format.clone()), ["acme o-1"]);
        let of_expression = keys(&expression().key_format(format), [r#"{"a":"acme","b":"o-1"}"#]);
        assert!(of_function[0].is_some());
        assert_eq!(of_function, of_expression);
    }
    assert_ne!(keys(&parts(), ["acme o-1"]), keys(&parts(), ["acme-o 1"]));
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
