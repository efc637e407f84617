//! How keys are made: optional parts, functions, readable keys and keys with a secret.

use std::sync::atomic::{AtomicU32, Ordering};

use lambda_idempotency::{
    Operation,
    keys::{
        KeyFormat,
        inspect::{self, NoKey},
        record,
    },
    policy::OnMissingKey,
    source::Sqs,
};
use serde_json::Value;

use crate::{
    diverting_failures::Taken,
    support::{World, batch, order, with_body},
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

/// It may answer otherwise, or panic, when it is called again: the sink gets the key that was claimed.
#[tokio::test]
async fn the_function_is_called_once_for_a_record_that_is_diverted() {
    let (world, taken, calls) = (World::new(), Taken::default(), AtomicU32::new(0));
    let once = Operation::new("invite").key_fn(move |_: &str| {
        assert_eq!(calls.fetch_add(1, Ordering::Relaxed), 0, "called again");
        Ok(vec!["ann@example.com".to_owned()])
    });
    let function = world.on(Sqs::new().divert(taken.sink()), &once);
    assert!(world.returned(&function, &batch([order("m-1", "a", "give up")])).await.is_empty());
    assert!(taken.records()[0].key_hash.is_some());
}
