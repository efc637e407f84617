//! Values that no delivery shows: documents, keys, producers, stored records, and what stores answer.

use lambda_idempotency::{MemoryStore, clock::Timestamp, keys::powertools::PowertoolsKeys};
use lambda_idempotency_core::{
    admission::{Admission, Claim, Settlement, admit},
    record::{Fingerprint, IdempotencyRecord, Json, Owner, Status},
    store::{Guard, RecordVersion, Store, Verdict, Write},
};
use lambda_idempotency_engine::batch::Returned;
use lambda_idempotency_keys::{
    Document, Expression, Key, KeyFormat, Scope, Secret, producer::KeySpec,
};
use lambda_idempotency_testkit::faults::{Fault, FaultyStore};
use serde_json::json;

use crate::secrets_capture::{CANARY, Captured};

/// Expressions that select, decode and fail, on a document that consists of canaries.
const EXPRESSIONS: &str = "id; none; empty; nowhere; [id, nowhere]; {a: id, b: none}; [id, empty]; json(text); json(id); \
                           json(list); json(b64); list[*].a; list[*]; object.[a, b]; powertools_json(text); \
                           powertools_base64(id); powertools_base64_gzip(b64); base64(id); base64(n); base64_gzip(b64); \
                           base64_gzip(id); not_null(none, nowhere); length(id); id == 'a'";

#[test]
fn documents_selections_and_keys() {
    let captured = Captured::default();
    let text = json!({
        "id": CANARY, "list": [CANARY, 1, null], "none": null, "empty": "", "n": 0.1,
        "object": { "a": CANARY }, "text": format!("{{\"{CANARY}\": "), "b64": "YzRuNHJ5",
    });
    let text = text.to_string();
    let document = Document::parse(&text).unwrap();
    captured.debug(&document);
    let mut refused = 0;
    for expression in EXPRESSIONS.split("; ") {
        match Expression::compile(expression).map(|expression| expression.select(&document)) {
            Ok(Ok(selection)) => {
                captured.debug(&selection);
                let scope = Scope { operation: "op", tenant: Some(CANARY) };
                captured.debug(&KeyFormat::Hashed.key(&scope, &selection));
            }
            Ok(Err(error)) => {
                refused += 1;
                captured.error(&error);
            }
            Err(error) => captured.error(&error),
        }
    }
    assert!(refused > 15, "{refused}");
    let bad = [
        format!("{{\"{CANARY}\""),
        format!("{{\"{CANARY}\":1,\"{CANARY}\":2}}"),
        CANARY.to_owned(),
        format!("[\"{CANARY}\", 1e999]"),
        format!("[\"{CANARY}\\q\"]"),
    ];
    bad.iter().for_each(|text| captured.error(&Document::parse(text).unwrap_err()));
    for powertools in [PowertoolsKeys::python("p"), PowertoolsKeys::typescript("t")] {
        for expression in EXPRESSIONS.split("; ") {
            let producer = KeySpec::new("op", expression).powertools(powertools.clone()).producer();
            captured.debug(&producer);
            let Ok(producer) = producer else { continue };
            captured.debug(&producer.key(&text));
            bad.iter().for_each(|text| captured.debug(&producer.key(text)));
        }
    }
    captured.debug(&Secret::new(CANARY.repeat(8)).unwrap());
    captured.error(&Secret::new(CANARY).unwrap_err());
    captured.assert_silent("Selection|Document|Secret|at line");
}

#[test]
fn producers_and_messages() {
    let captured = Captured::default();
    let by_id = || KeySpec::new("op", "[id, at]");
    let secret = KeyFormat::Secret(Secret::new(format!("{CANARY} that is long enough")).unwrap());
    for spec in [by_id().key_format(KeyFormat::Readable), by_id().key_format(secret)] {
        captured.debug(&spec);
        let producer = spec.producer().unwrap().for_tenant("t-1");
        captured.debug(&producer);
        captured.debug(&producer.message(&json!({ "id": CANARY, "at": 1, "note": CANARY })));
        for body in [
            json!({ "id": CANARY }).to_string(),
            json!({ "id": CANARY, "at": "", CANARY: CANARY }).to_string(),
            format!("{{\"id\":\"{CANARY}\",\"at\":0.1000000000000000055}}"),
            CANARY.to_owned(),
        ] {
            captured.error(&producer.message_of(body).unwrap_err());
        }
        captured.error(&producer.key_of_bytes(&[CANARY.as_bytes(), &[0xff]].concat()).unwrap_err());
        let odd = std::collections::BTreeMap::from([((CANARY, 1), CANARY)]);
        captured.error(&producer.message(&odd).unwrap_err());
    }
    let refusing = KeySpec::without_key("op").key_fn(|_| Err("it is refused"));
    captured.debug(&refusing);
    captured.error(&refusing.producer().unwrap().key(CANARY).unwrap_err());
    captured.assert_silent("KeySpec {|Producer {|Message {|part 2 of it|as a string|refused");
}

#[tokio::test]
async fn stored_records_and_answers_of_stores() {
    let captured = Captured::default();
    let json = || Json::from(format!("\"{CANARY}\""));
    let key = Key::from_text(format!("charge#~/{CANARY}"));
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
    record.owner = Some(Owner::from_bits(1));
    record.fingerprint = Some(Fingerprint::new("1f38"));
    (record.result, record.steps) = (Some(json()), Some(json()));
    (record.outbox, record.payload) = (Some(json()), Some(json()));
    let mut sent = record.clone();
    sent.outbox = None;
    let claim = Claim {
        owner: Owner::from_bits(2),
        lease_until: Timestamp::from_secs(60),
        retention: std::time::Duration::from_secs(60),
        clock_skew: std::time::Duration::from_secs(1),
        fingerprint: None,
        application: None,
        provenance: None,
        payload: Some(json()),
    };
    captured.debug(&claim);
    let Admission::Try { held, .. } = admit(&claim, None, Timestamp::EPOCH) else { panic!() };
    let complete = Settlement::Complete { result: Some(json()), outbox: Some(json()) };
    captured.debug(&Settlement::FailPermanently { result: Some(json()), error_type: "E".into() });
    for found in [None, Some(&record), Some(&sent)] {
        captured.debug(&held.settled(&complete, found, Timestamp::EPOCH));
        captured.debug(&admit(&claim, found, Timestamp::EPOCH));
    }
    captured.debug(&(held, complete, Returned::Value(json())));
    let guard = Guard::Unchanged(RecordVersion::of(&record));
    captured.debug(&Write::new(key.clone(), guard, Some(record.clone())));
    let store = FaultyStore::new(MemoryStore::new());
    store.inject(Fault::lose_answer());
    let write = Write::new(key, Guard::Absent, Some(record.clone()));
    for _ in 0..2 {
        captured.debug(&store.write(std::slice::from_ref(&write), Timestamp::EPOCH).await);
    }
    captured.debug(&(Verdict::Found(Some(record)), store.history(), store));
    captured.assert_silent("Overtaken|Replay|Found|Unknown|MemoryStore|charge#");
}
