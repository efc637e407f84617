//! The `Debug` and `Display` texts of public types contain nothing of a payload, a key or a result,
//! because users log them.
//!
//! `behaviour/secrets.rs` tests what the library itself logs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::{
    error::Error,
    fmt::{Debug, Write as _},
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use lambda_idempotency::{
    BadRecord, Call, Failure, Idempotency, MemoryStore, OnBadRecord, OnMissingKey, Operation,
    Outcome, PowertoolsKeys, RunContext, RunError, StoreError, Timestamp, inspect, record,
    store::StoreErrorKind, testing,
};
use lambda_idempotency_core::{
    admission::{Admission, Claim, Settlement, admit},
    outcome::ResultKept,
    record::{Fingerprint, IdempotencyRecord, Json, Owner, Status},
    store::{Guard, RecordVersion, Store, Verdict, Write},
};
use lambda_idempotency_engine::batch::Returned;
use lambda_idempotency_keys::{
    Document, Expression, Functions, Key, KeyFormat, Scope, Secret, producer::KeySpec,
};
use lambda_idempotency_testkit::faults::{Fault, FaultyStore};
use serde_json::{Value, json};

const SECRET: &str = "s3cr3t";

/// The texts of values and errors, with the types of the values.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<String>>);

impl Shown {
    fn debug(&self, what: &impl Debug) {
        let mut text = self.0.lock().unwrap();
        let name = std::any::type_name_of_val(what);
        writeln!(text, "{name}: {what:?}\n{name}: {what:#?}").unwrap();
    }

    fn error(&self, error: &(dyn Error + 'static)) {
        let mut next = Some(error);
        while let Some(error) = next {
            let mut text = self.0.lock().unwrap();
            writeln!(text, "error: {error}\nerror: {error:?}\nerror: {error:#?}").unwrap();
            next = error.source();
        }
    }

    #[track_caller]
    fn assert_silent(&self, proof: &[&str]) {
        let text = self.0.lock().unwrap();
        for part in proof {
            assert!(text.contains(part), "no text mentions {part}:\n{text}");
        }
        let leak = text.lines().find(|line| line.contains(SECRET));
        assert_eq!(leak, None);
    }
}

fn json(text: &str) -> Json {
    Json::from(format!("\"{text} {SECRET}\""))
}

fn filled() -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
    record.owner = Some(Owner::from_bits(1));
    record.fingerprint = Some(Fingerprint::new("1f38"));
    record.result = Some(json("outcome"));
    record.error_type = Some("payments::Declined".into());
    record
}

#[test]
fn records_and_decisions_about_them() {
    let shown = Shown::default();
    let key = Key::from_text(format!("charge#~/{SECRET}"));
    let claim = Claim {
        owner: Owner::from_bits(2),
        lease_until: Timestamp::from_secs(60),
        retention: std::time::Duration::from_secs(60),
        clock_skew: std::time::Duration::from_secs(1),
        fingerprint: None,
        application: None,
        provenance: None,
    };
    let Admission::Try { held, .. } = admit(&claim, None, Timestamp::EPOCH) else { panic!() };
    let complete = Settlement::Complete { result: Some(json("settled")) };
    let permanent =
        Settlement::FailPermanently { result: Some(json("failed")), error_type: "E".into() };
    shown.debug(&held.settled(&complete, None, Timestamp::EPOCH));
    shown.debug(&held.settled(&complete, Some(&filled()), Timestamp::EPOCH));
    shown.debug(&admit(&claim, Some(&filled()), Timestamp::EPOCH));
    shown.debug(&held);
    shown.debug(&(complete, permanent));
    shown.debug(&Verdict::Found(Some(filled())));
    let guard = Guard::Unchanged(RecordVersion::of(&filled()));
    shown.debug(&Write { key: key.clone(), guard, record: Some(filled()) });
    shown.debug(&(Returned::Value(json("returned")), key));
    for outcome in [
        Outcome::Executed { result: Some(json("executed")), kept: ResultKept::Whole },
        Outcome::Replayed { result: Some(json("replayed")) },
        Outcome::CompletionLost {
            result: Some(json("lost")),
            error: StoreError::new(StoreErrorKind::Unavailable, "completing"),
        },
        Outcome::Failed {
            failure: Failure::transient(SECRET),
            failed_attempts: 1,
            permanent: false,
        },
    ] {
        shown.debug(&outcome);
    }
    shown.assert_silent(&["Replay", "Overtaken", "Again", "Found", "Executed", "charge#"]);
}

#[tokio::test]
async fn stores_and_their_histories() {
    let shown = Shown::default();
    let store = FaultyStore::new(MemoryStore::new());
    store.inject(Fault::lose_answer());
    let write = Write {
        key: Key::from_text(format!("charge#~/{SECRET}")),
        guard: Guard::Absent,
        record: Some(filled()),
    };
    for _ in 0..2 {
        for verdict in store.write(std::slice::from_ref(&write), Timestamp::EPOCH).await {
            shown.debug(&verdict);
        }
    }
    shown.debug(&store);
    shown.debug(&store.history());
    shown.assert_silent(&["FaultyStore", "Unknown", "Found", "MemoryStore"]);
}

/// Expressions that fail in many ways, on a document that consists of secrets.
#[test]
fn expressions_documents_and_keys() {
    let shown = Shown::default();
    let text = json!({
        "id": SECRET, "list": [SECRET, 1, null], "none": null, "empty": "", "n": 0.1,
        "object": { "a": SECRET }, "text": format!("{{\"{SECRET}\": "), "b64": "czNjcjN0",
    });
    let document = Document::parse(&text.to_string()).unwrap();
    shown.debug(&document);
    let expressions = [
        "id",
        "none",
        "empty",
        "nowhere",
        "[id, nowhere]",
        "{a: id, b: none}",
        "[id, empty]",
        "to_number(id)",
        "sum(list)",
        "sort(list)",
        "join(id, list)",
        "abs(id)",
        "json(text)",
        "json(id)",
        "json(list)",
        "keys(id)",
        "list[*].a",
        "max_by(list, &a)",
        "length(n)",
        "map(&to_number(@), list)",
        "to_string(@)",
        "powertools_json(text)",
        "reverse(n)",
        "powertools_base64(id)",
        "powertools_base64_gzip(b64)",
        "starts_with(list, id)",
        "starts_with(id, list)",
        "sort_by(list, &@)",
        "merge(id)",
        "not_null(none, nowhere)",
    ];
    let mut refused = 0;
    for text in expressions {
        match Expression::compile_with(text, &Functions::standard()) {
            Ok(expression) => match expression.select(&document) {
                Ok(selection) => {
                    shown.debug(&selection);
                    shown.debug(&(Scope { operation: "op", tenant: None }.key(&selection)));
                }
                Err(error) => {
                    refused += 1;
                    shown.error(&error);
                }
            },
            Err(error) => shown.error(&error),
        }
    }
    assert!(refused > 15, "{refused}");
    for powertools in [PowertoolsKeys::python("p"), PowertoolsKeys::typescript("t")] {
        let document = powertools.read(&text.to_string()).unwrap();
        shown.debug(&document);
        for text in expressions {
            match powertools.compile(text) {
                Ok(expression) => match powertools.key(&document, Some(&expression)) {
                    Ok(key) => shown.debug(&key),
                    Err(error) => shown.error(&error),
                },
                Err(error) => shown.error(&error),
            }
        }
    }
    for text in [
        format!("{{\"{SECRET}\""),
        format!("{{\"{SECRET}\":1,\"{SECRET}\":2}}"),
        SECRET.to_owned(),
        format!("[\"{SECRET}\", 1e999]"),
        format!("[\"{SECRET}\\q\"]"),
    ] {
        shown.error(&Document::parse(&text).unwrap_err());
        for powertools in [PowertoolsKeys::python("p"), PowertoolsKeys::typescript("t")] {
            if let Err(error) = powertools.read(&text) {
                shown.error(&error);
            }
        }
    }
    shown.debug(&Secret::new(SECRET.repeat(8)).unwrap());
    shown.error(&Secret::new(SECRET).unwrap_err());
    shown.assert_silent(&["Selection", "Document", "PowertoolsDocument", "Secret", "at line"]);
}

#[tokio::test]
async fn calls_and_bad_records() {
    let shown = Shown::default();
    let idempotency = Idempotency::new(MemoryStore::new());
    let (bad, call) = (shown.clone(), shown.clone());
    let operation = Operation::new("op").key("id").on_bad_record(OnBadRecord::divert(
        move |record: BadRecord| {
            bad.debug(&record);
            async { Ok::<(), Failure>(()) }
        },
    ));
    let handler = move |_: Value, this: Call| {
        call.debug(&this);
        assert!(this.raw_record().unwrap().contains(SECRET));
        call.error(&this.record_as::<Vec<u8>>().unwrap_err());
        async { Err::<(), _>(Failure::transient(SECRET)) }
    };
    let message = |body: String| {
        json!({
            "messageId": "m", "eventSource": "aws:sqs", "body": body,
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
        })
    };
    let bodies = [
        json!({ "id": SECRET }).to_string(),
        json!({ "id": null, "x": SECRET }).to_string(),
        SECRET.to_owned(),
    ];
    let function = idempotency.sqs(operation.clone(), handler).unwrap();
    for body in bodies {
        let event = json!({ "Records": [message(body)] });
        if let Err(error) = testing::invoke(&function, &event).await {
            shown.error(&error);
        }
        for record in inspect::event(&event.to_string(), Some(&operation)).unwrap() {
            shown.debug(&record);
            if let Some(Err(error)) = record.key.map(|key| key.key) {
                shown.error(&error);
            }
        }
    }
    for event in [json!({ SECRET: SECRET }), json!([SECRET]), json!(SECRET)] {
        shown.error(&testing::invoke(&function, &event).await.unwrap_err());
    }
    let raw = Operation::new("raw").key(record("body")).on_missing_key(OnMissingKey::Skip);
    shown.debug(&raw);
    shown.error(&inspect::event(&format!("{{\"{SECRET}"), None).unwrap_err());
    shown.assert_silent(&[
        "BadRecord",
        "Call",
        "inspect::Record: Record {",
        "RecordKey",
        "not from a source",
        "Operation",
    ]);
}

/// An id that an application has chosen is treated like its payload.
#[tokio::test]
async fn records_with_ids_that_applications_chose() {
    let shown = Shown::default();
    let (calls, bad) = (shown.clone(), shown.clone());
    let ids = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ids);
    let handler = move |_: Value, call: Call| {
        calls.debug(&call);
        calls.debug(call.record());
        seen.lock().unwrap().push(call.record().id.to_string());
        async { Err::<(), _>(Failure::transient("it failed")) }
    };
    let divert = OnBadRecord::divert(move |record: BadRecord| {
        bad.debug(&record);
        async { Ok::<(), Failure>(()) }
    });
    let operation = Operation::new("op").on_bad_record(divert);
    let rabbit = |data: &str| {
        let message = json!({ "basicProperties": { "messageId": SECRET }, "data": data });
        let queues = json!({ "orders::/": [message] });
        json!({
            "eventSource": "aws:rmq", "eventSourceArn": "arn:aws:mq:eu-west-1:1:broker:shop:b-1",
            "rmqMessagesByQueue": queues,
        })
    };
    let function = Idempotency::new(MemoryStore::new()).rabbit_mq(operation.clone(), handler);
    let function = function.unwrap();
    for data in ["e30=", "no base64!"] {
        let event = rabbit(data);
        if let Err(error) = testing::invoke(&function, &event).await {
            shown.error(&error);
        }
        for record in inspect::event(&event.to_string(), Some(&operation)).unwrap() {
            shown.debug(&record);
        }
    }
    shown.assert_silent(&[
        "Call",
        "BadRecord",
        "RecordId",
        "rabbitmq record #",
        "inspect::Record: Record {",
    ]);
    assert_eq!(*ids.lock().unwrap(), [SECRET], "the handler gets the id, as it gets the payload");
}

#[test]
fn producers_messages_and_errors() {
    let shown = Shown::default();
    let by_id = || KeySpec::new("op", "[id, at]");
    let secret = KeyFormat::Secret(Secret::new(format!("{SECRET} that is long enough")).unwrap());
    for spec in [by_id().key_format(KeyFormat::Readable), by_id().key_format(secret)] {
        shown.debug(&spec);
        let producer = spec.producer().unwrap().for_tenant("t-1");
        shown.debug(&producer);
        let message = producer.message(&json!({ "id": SECRET, "at": 1, "note": SECRET })).unwrap();
        shown.debug(&message);
        for body in [
            json!({ "id": SECRET }).to_string(),
            json!({ "id": SECRET, "at": "", SECRET: SECRET }).to_string(),
            format!("{{\"id\":\"{SECRET}\",\"at\":0.1000000000000000055}}"),
            SECRET.to_owned(),
        ] {
            shown.error(&producer.message_of(body).unwrap_err());
        }
        shown.error(&producer.key_of_bytes(&[SECRET.as_bytes(), &[0xff]].concat()).unwrap_err());
        let odd = std::collections::BTreeMap::from([((SECRET, 1), SECRET)]);
        shown.error(&producer.message(&odd).unwrap_err());
    }
    shown.assert_silent(&["KeySpec {", "Producer {", "Message {", "part 2 of it", "as a string"]);
}

#[tokio::test]
async fn errors_of_run() {
    let shown = Shown::default();
    let idempotency = Idempotency::new(MemoryStore::new());
    let by_id = Operation::new("op").key("id").fingerprint("note");
    let payload = |id: &str, note: &str| json!({ "id": format!("{SECRET}-{id}"), "note": note });
    let fails = async |payload: &Value, failure: Failure| -> RunError {
        let run = idempotency.run(&by_id, payload, RunContext::without_deadline(), |_| async {
            Err::<(), _>(failure)
        });
        run.await.unwrap_err()
    };
    shown.error(&fails(&payload("a", SECRET), Failure::transient(SECRET)).await);
    shown.error(&fails(&payload("b", SECRET), Failure::permanent(SECRET)).await);
    shown.error(&fails(&payload("b", SECRET), Failure::permanent(SECRET)).await);
    shown.error(&fails(&json!({ "note": SECRET }), Failure::transient(SECRET)).await);
    let done = payload("c", SECRET);
    let run = idempotency
        .run(&by_id, &done, RunContext::without_deadline(), |_| async { Ok::<_, Failure>(1) });
    assert!(!run.await.unwrap().replayed);
    let other = payload("c", "another");
    let run = idempotency
        .run(&by_id, &other, RunContext::without_deadline(), |_| async { Ok::<_, Failure>(1) });
    shown.error(&run.await.unwrap_err());
    let run = idempotency.run(&by_id, &done, RunContext::without_deadline(), |_| async {
        Ok::<String, Failure>("".into())
    });
    shown.error(&run.await.unwrap_err());
    shown.assert_silent(&["handler failed", "permanently", "another payload", "another type"]);
}

/// Lists every public error of these crates. Before you add one to the list, test its texts above.
#[test]
fn no_error_is_forgotten() {
    const REVIEWED: &[&str] = &[
        // Their texts are our own, with positions and parts of expressions; tested above.
        "DivertReason",
        "DocumentError",
        "ExpressionError",
        "InspectError",
        "InvocationError",
        "Collision",
        "NoKey",
        "PayloadError",
        "ProducerError",
        "RecordError",
        // Contains a `Rejection`, and has its text.
        "Rejected",
        "Rejection",
        "RunError",
        "SecretError",
        "SelectionError",
        "StoreError",
        // Its texts are constants.
        "NotJson",
        // They are about the configuration, which is not data.
        "ConfigError",
        "DynamoDbConfigError",
        "EntropyError",
        "FilterMistake",
        "Foreign",
        "HttpLayerMistake",
        "NoDefaultKey",
        "NotStarted",
        "KeySpecError",
        "UnknownHashFunction",
        "UnknownPowertoolsLanguage",
    ];
    let mut found = Vec::new();
    for of in ["core", "dynamodb", "engine", "keys", "lambda", "powertools"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("src");
        errors(&root, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    assert!(found.len() > 10, "{found:?}");
    for name in &found {
        assert!(
            REVIEWED.contains(&name.as_str()),
            "`{name}` is a new error: check that its texts contain nothing of a payload, a key or a \
             result, test it in this file, and add it to the list"
        );
    }
}

/// The public types below `folder` that are errors.
fn errors(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            errors(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut derived = false;
        for line in text.lines() {
            derived |= line.contains("thiserror::Error");
            let rest = line.strip_prefix("pub enum ").or_else(|| line.strip_prefix("pub struct "));
            if let Some(rest) = rest {
                let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                let written = text.contains(&format!("Error for {name} "));
                if derived || written {
                    found.push(name.to_owned());
                }
            }
            // A derive belongs to the item before the next blank line.
            derived &= !line.is_empty();
        }
    }
}
