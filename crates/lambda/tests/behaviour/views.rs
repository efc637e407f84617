//! What expressions read of a record of each source: its payload, and the record around it. A function
//! stores the same key that `inspect` shows.

mod nested;
mod rows;

use std::collections::BTreeSet;

use lambda_idempotency::{
    Function, Operation,
    keys::{
        KeyPath,
        inspect::{self, AnySource, View},
        record,
    },
    source::*,
};
use lambda_idempotency_core::{clock::Clock as _, record::Status, store::Store as _};
use lambda_idempotency_keys::Key;
use serde_json::Value;

use self::rows::{Payload, Row, rows};
use crate::support::World;

/// What a function is asked for: its key, and whether its handler gets the whole record.
#[derive(Clone, Default)]
struct Asked {
    path: Option<KeyPath>,
    whole_record: bool,
}

impl Asked {
    fn key(path: impl Into<KeyPath>) -> Self {
        Self { path: Some(path.into()), whole_record: false }
    }

    fn whole(self) -> Self {
        Self { whole_record: true, ..self }
    }

    /// With the key, if it is one of the payload.
    fn operation(&self) -> Operation {
        let operation = Operation::new("see");
        match &self.path {
            Some(path) if path.view == View::Payload => operation.key(&*path.expression),
            _ => operation,
        }
    }
}

/// The source with the key, if it is one of the record.
macro_rules! keyed {
    ($source:expr, $asked:expr) => {{
        let source = $source;
        match $asked.path.clone().filter(|path| path.view == View::Record) {
            Some(path) => source.key(path),
            None => source,
        }
    }};
}

/// The same of a source whose payload is a part of the record, if it is asked for the whole.
macro_rules! asked {
    ($source:expr, $asked:expr) => {{
        let mut source = keyed!($source, $asked);
        if $asked.whole_record {
            source = source.whole_record();
        }
        source
    }};
}

/// A function of the row's source, whose handler notes its payload.
fn function(world: &World, row: &Row, asked: &Asked) -> Function {
    fn on(world: &World, row: &Row, asked: &Asked, source: impl Source) -> Function {
        let (idempotency, operation) = (world.idempotency(), asked.operation());
        let built = match row.payload {
            Payload::Text(_) => idempotency.on(source, &operation, world.text_handler()),
            Payload::Json(_) => idempotency.on(source, &operation, world.raw_handler()),
        };
        built.unwrap()
    }
    macro_rules! on {
        (pipe of $source:expr) => {
            on(world, row, asked, Pipe::of(asked!($source, asked)))
        };
        (whole $source:expr) => {
            on(world, row, asked, keyed!($source, asked))
        };
        ($source:expr) => {
            on(world, row, asked, asked!($source, asked))
        };
    }
    let queue = row.envelopes.iter().fold(Sqs::new(), |queue, one| queue.envelope(*one));
    let topic = row.envelopes.iter().fold(Sns::new(), |topic, one| topic.envelope(*one));
    match row.source {
        "sqs" => on!(queue),
        "sns" => on!(topic),
        "s3" => on!(whole S3::new()),
        "kinesis" => on!(Kinesis::new()),
        "dynamodb" => on!(DynamoDbStream::new()),
        "documentdb" => on!(DocumentDb::new()),
        "kafka" => on!(Kafka::new()),
        "activemq" => on!(ActiveMq::new()),
        "rabbitmq" => on!(RabbitMq::new()),
        "eventbridge" => on!(EventBridge::new()),
        "scheduler" => on!(whole Scheduler::new()),
        "invoke" if asked.path.is_some() => on!(whole Invoke::new()),
        "invoke" => on!(whole Invoke::by_request_id()),
        "pipe of sqs" => on!(pipe of queue),
        "pipe of kinesis" => on!(pipe of Kinesis::new()),
        "pipe of dynamodb" => on!(pipe of DynamoDbStream::new()),
        "pipe of kafka" => on!(pipe of Kafka::new()),
        "pipe of activemq" => on!(pipe of ActiveMq::new()),
        "pipe of rabbitmq" => on!(pipe of RabbitMq::new()),
        other => panic!("no source is {other}"),
    }
}

/// The record as `inspect` shows it.
fn inspected(world: &World, row: &Row, asked: &Asked) -> inspect::Record {
    let event = row.event.to_string();
    let any = row.envelopes.iter().fold(AnySource::new(), |any, one| any.envelope(*one));
    let any = asked!(any, asked);
    let operation = asked.operation();
    let records = inspect::invocation(&event, &any, Some(&operation), &world.context()).unwrap();
    let [record] = &*records else { panic!("{}: {records:?}", row.name) };
    assert_eq!(record.source, row.reported_source(), "{}", row.name);
    record.clone()
}

/// Invokes a function with the event. The stored key and the handler's payload must be those that
/// `inspect` shows.
async fn runs_as_shown(row: &Row, asked: &Asked) -> inspect::Record {
    let world = World::new();
    let shown = inspected(&world, row, asked);
    let key = |shown: &inspect::Record| -> Key {
        let key = &shown.key.as_ref().unwrap().key;
        key.clone().unwrap_or_else(|reason| panic!("{}: {reason}", row.name))
    };
    world.invoke(&function(&world, row, asked), &row.event).await.unwrap();
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
        let shown = inspected(&World::new(), &row, &Asked::key(record("@")));
        assert_eq!(json(&shown.raw), row.record, "{name}: the record");
        assert_eq!(shown.key.unwrap().parts, [("@".to_owned(), row.record.clone())], "{name}");
        match &row.payload {
            Payload::Json(payload) => {
                assert_eq!(json(shown.payload.as_ref().unwrap()), *payload, "{name}: the payload");
                let shown = runs_as_shown(&row, &Asked::key("@")).await;
                assert_eq!(shown.key.unwrap().parts, [("@".to_owned(), payload.clone())], "{name}");
            }
            Payload::Text(text) => {
                assert_eq!(shown.payload.as_deref(), Ok(*text), "{name}: the payload");
                let refused = inspected(&World::new(), &row, &Asked::key("@"));
                assert!(refused.key.unwrap().key.is_err(), "{name}: expressions cannot read it");
            }
        }
        // The paths that users write.
        assert!(!row.sees.is_empty(), "{name}");
        for (path, value) in &row.sees {
            let asked = Asked::key(path.clone());
            // A function refuses a key of a message that may contain several notifications.
            let shown = match row.is_of_several() && path.view == View::Record {
                true => inspected(&World::new(), &row, &asked),
                false => runs_as_shown(&row, &asked).await,
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
        let shown = runs_as_shown(&row, &Asked::default()).await;
        assert!(shown.key.unwrap().path.is_none(), "{}", row.name);
    }
}

/// With `.whole_record()` handlers and expressions get the record instead of the payload.
#[tokio::test]
async fn a_whole_record_is_what_record_expressions_read() {
    for row in rows() {
        let name = row.name;
        let row = Row { payload: Payload::Json(row.record.clone()), sees: Vec::new(), ..row };
        if !row.is_of_several() {
            runs_as_shown(&row, &Asked::default().whole()).await;
        }
        let shown = inspected(&World::new(), &row, &Asked::key("@").whole());
        assert_eq!(shown.key.unwrap().parts, [("@".to_owned(), row.record)], "{name}");
    }
}

#[test]
fn no_source_is_left_out() {
    let rows = rows();
    let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), rows.len(), "each row has a different name");
    let covered: BTreeSet<_> = rows.iter().map(Row::reported_source).collect();
    assert_eq!(covered, inspect::sources().collect(), "a row for every source");
}
