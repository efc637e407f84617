//! What expressions read of a record of each source: its payload, and the record around it. A function
//! stores the same key that `inspect` shows.

mod nested;
mod rows;

use std::collections::BTreeSet;

use lambda_idempotency::{Function, Operation, inspect, record};
use lambda_idempotency_core::{clock::Clock as _, record::Status, store::Store as _};
use lambda_idempotency_keys::Key;
use serde_json::Value;

use self::rows::{Payload, Row, rows};
use crate::support::World;

/// A function of the row's source, whose handler notes its payload.
fn function(world: &World, row: &Row, operation: Operation) -> Function {
    let text = matches!(row.payload, Payload::Text(_));
    macro_rules! route {
        ($method:ident) => {
            if text {
                world.idempotency().$method(operation, world.text_handler())
            } else {
                world.idempotency().$method(operation, world.raw_handler())
            }
        };
    }
    let built = match row.source {
        "sqs" => route!(sqs),
        "sns" => route!(sns),
        "s3" => route!(s3),
        "kinesis" => route!(kinesis),
        "dynamodb" => route!(dynamodb_stream),
        "documentdb" => route!(document_db),
        "kafka" => route!(kafka),
        "activemq" => route!(active_mq),
        "rabbitmq" => route!(rabbit_mq),
        "eventbridge" => route!(event_bridge),
        "pipe" => route!(pipe),
        "scheduler" => route!(scheduler),
        "invoke" => route!(invoke),
        other => panic!("no method for {other}"),
    };
    built.unwrap()
}

/// The record as `inspect` shows it for an operation.
fn inspected(world: &World, row: &Row, operation: &Operation) -> inspect::Record {
    let event = row.event.to_string();
    let records = inspect::invocation(&event, Some(operation), &world.context()).unwrap();
    let [record] = &*records else { panic!("{}: {records:?}", row.name) };
    assert_eq!(record.source, row.source, "{}", row.name);
    record.clone()
}

/// Invokes a function with the event. The stored key and the handler's payload must be those that
/// `inspect` shows.
async fn runs_as_shown(row: &Row, operation: Operation) -> inspect::Record {
    let world = World::new();
    let shown = inspected(&world, row, &operation);
    let key = |shown: &inspect::Record| -> Key {
        let key = &shown.key.as_ref().unwrap().key;
        key.clone().unwrap_or_else(|reason| panic!("{}: {reason}", row.name))
    };
    world.invoke(&function(&world, row, operation), &row.event).await.unwrap();
    let keys = [key(&shown)];
    let stored = world.store.inner().read(&keys, world.clock.now()).await;
    let stored = stored[0].as_ref().unwrap().as_ref();
    assert_eq!(stored.map(|stored| stored.status), Some(Status::Completed), "{}", row.name);
    assert_eq!(world.store.inner().len(), 1, "{}: no other key", row.name);
    world.ledger.assert_once(shown.payload.as_ref().unwrap());
    assert_eq!(world.ledger.total(), 1, "{}", row.name);
    shown
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn expressions_read_the_payload_or_the_record_of_every_source() {
    for row in rows() {
        let name = row.name;
        // The whole record and the whole payload. The record is only inspected: functions refuse it as
        // a key if it differs on each delivery.
        let shown = inspected(&World::new(), &row, &row.operation.clone().key(record("@")));
        assert_eq!(json(&shown.raw), row.record, "{name}: the record");
        assert_eq!(shown.key.unwrap().parts, [("@".to_owned(), row.record.clone())], "{name}");
        match &row.payload {
            Payload::Json(payload) => {
                assert_eq!(json(shown.payload.as_ref().unwrap()), *payload, "{name}: the payload");
                let shown = runs_as_shown(&row, row.operation.clone().key("@")).await;
                assert_eq!(shown.key.unwrap().parts, [("@".to_owned(), payload.clone())], "{name}");
            }
            Payload::Text(text) => {
                assert_eq!(shown.payload.as_deref(), Ok(*text), "{name}: the payload");
                let refused = inspected(&World::new(), &row, &row.operation.clone().key("@"));
                assert!(refused.key.unwrap().key.is_err(), "{name}: expressions cannot read it");
            }
        }
        // The paths that users write.
        assert!(!row.sees.is_empty(), "{name}");
        for (path, value) in &row.sees {
            let operation = row.operation.clone().key(path.clone());
            // A function refuses a key of a message that may contain several notifications.
            let shown = match row.is_of_several() && *path == record(&*path.expression) {
                true => inspected(&World::new(), &row, &operation),
                false => runs_as_shown(&row, operation).await,
            };
            let seen = (path.expression.clone(), value.clone());
            assert_eq!(shown.key.unwrap().parts, [seen], "{name}: {path:?}");
        }
    }
}

/// The stored default key is also the one that `inspect` shows.
#[tokio::test]
async fn the_default_key_of_every_record_is_its_identity() {
    for row in rows() {
        let shown = runs_as_shown(&row, row.operation.clone()).await;
        assert!(shown.key.unwrap().path.is_none(), "{}", row.name);
    }
}

/// With `.whole_record()` handlers and expressions get the record instead of the payload.
#[tokio::test]
async fn a_whole_record_is_what_record_expressions_read() {
    for row in rows() {
        let Row { name, source, event, record, operation, .. } = row;
        let payload = Payload::Json(record.clone());
        let row = Row { name, source, event, record, payload, operation, sees: Vec::new() };
        if !row.is_of_several() {
            runs_as_shown(&row, row.operation.clone().whole_record()).await;
        }
        let shown = inspected(&World::new(), &row, &row.operation.clone().whole_record().key("@"));
        assert_eq!(shown.key.unwrap().parts, [("@".to_owned(), row.record)], "{name}");
    }
}

#[test]
fn no_source_is_left_out() {
    let rows = rows();
    let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), rows.len(), "each row has a different name");
    let covered: BTreeSet<_> = rows.iter().map(|row| row.source).collect();
    assert_eq!(covered, inspect::sources().collect(), "a row for every source");
}
