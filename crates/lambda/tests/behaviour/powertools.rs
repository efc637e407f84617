//! Operations with Powertools keys, compared with recorded requests of Powertools.

use std::time::Duration;

use lambda_idempotency::{
    Call, Failure, Operation, Run,
    clock::Timestamp,
    keys::{powertools::PowertoolsKeys, record},
    policy::OnMissingKey,
    source::{Invoke, Sqs},
    store::Store,
};
use lambda_idempotency_core::{
    record::{IdempotencyRecord, Status},
    store::{Guard, Write},
};
use lambda_idempotency_keys::Key;
use serde_json::{Value, json, value::RawValue};

use crate::support::{World, serve};

const PYTHON: &str =
    include_str!("../../../keys/tests/keys/powertools/vectors/requests-python.json");
const TYPESCRIPT: &str =
    include_str!("../../../keys/tests/keys/powertools/vectors/requests-typescript.json");

/// The recording of one call of a Powertools function.
struct Recorded {
    vector: Value,
    python: bool,
}

impl Recorded {
    fn all() -> Vec<Self> {
        let read = |text: &str, python| {
            let mut vectors: Value = serde_json::from_str(text).unwrap();
            let Value::Array(vectors) = vectors["vectors"].take() else { panic!("no vectors") };
            vectors.into_iter().map(move |vector| Self { vector, python }).collect::<Vec<_>>()
        };
        read(PYTHON, true).into_iter().chain(read(TYPESCRIPT, false)).collect()
    }

    fn name(&self) -> &str {
        self.vector["name"].as_str().unwrap()
    }

    fn config(&self, option: &str) -> Option<&str> {
        self.vector["config"][option].as_str()
    }

    fn key(&self) -> Option<Key> {
        self.vector["idempotency_key"].as_str().map(Key::from_text)
    }

    fn powertools(&self) -> PowertoolsKeys {
        let prefix = self.config("key_prefix");
        if self.python {
            PowertoolsKeys::python(prefix.unwrap_or("orders-fn.app.process"))
        } else {
            PowertoolsKeys::typescript(prefix.unwrap_or("orders-fn"))
        }
    }

    fn operation(&self) -> Operation {
        let operation = Operation::new("place")
            .key(self.config("event_key_jmespath").unwrap_or("@"))
            .powertools(self.powertools().accept_collisions())
            .on_missing_key(OnMissingKey::RunUnprotected)
            .retention(Duration::from_secs(3600));
        match self.config("payload_validation_jmespath") {
            Some(path) => operation.fingerprint(path),
            None => operation,
        }
    }

    fn payload(&self) -> Box<RawValue> {
        RawValue::from_string(self.vector["payload_json"].as_str().unwrap().to_owned()).unwrap()
    }

    /// `None` for JavaScript's `undefined`, which is not JSON.
    fn result(&self) -> Option<Value> {
        serde_json::from_str(self.vector["result_json"].as_str().unwrap()).ok()
    }

    async fn run(&self, world: &World, result: Value) -> Run<Value> {
        let (operation, payload) = (self.operation(), self.payload());
        let function = |_| async { Ok(result) };
        world.call(&world.idempotency(), &operation, &payload, function).await.unwrap()
    }
}

async fn stored(world: &World, key: &Key) -> Option<IdempotencyRecord> {
    let keys = std::slice::from_ref(key);
    world.store.read(keys, Timestamp::from_secs(1_800_000_000)).await.remove(0).unwrap()
}

#[tokio::test]
async fn records_equal_those_of_powertools() {
    let mut fingerprints = 0;
    for recorded in Recorded::all() {
        let name = recorded.name().to_owned();
        let result = recorded.result().unwrap_or(Value::Null);
        let world = World::instant();
        assert!(!recorded.run(&world, result.clone()).await.replayed);
        let Some(key) = recorded.key() else {
            let again = recorded.run(&world, result).await;
            assert!(!again.replayed, "without a key the function is called each time: {name}");
            continue;
        };
        let record = stored(&world, &key).await.unwrap_or_else(|| panic!("no record: {name}"));
        assert_eq!(record.status, Status::Completed);
        assert_eq!(record.expires_at, Timestamp::from_secs(1_700_003_600), "{name}");
        let item = &recorded.vector["calls"][0]["request"]["Item"];
        let validation = item["validation"]["S"].as_str();
        fingerprints += usize::from(validation.is_some());
        assert_eq!(record.fingerprint.as_ref().map(|f| f.as_str()), validation, "{name}");
        if recorded.python {
            let update = &recorded.vector["calls"][1]["request"]["ExpressionAttributeValues"];
            assert_eq!(record.result.as_deref(), update[":response_data"]["S"].as_str(), "{name}");
        }
        let later = recorded.run(&world, json!("another")).await;
        assert!(later.replayed && later.result == result, "{name}");
    }
    assert!(fingerprints >= 4);
}

#[tokio::test]
async fn work_that_powertools_completed_is_replayed() {
    for recorded in Recorded::all() {
        let (Some(key), Some(result)) = (recorded.key(), recorded.result()) else { continue };
        let world = World::instant();
        let mut by_powertools =
            IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(1_700_003_600));
        by_powertools.lease_until = Some(Timestamp::from_millis(1_700_000_030_123));
        by_powertools.result = Some(recorded.vector["result_json"].as_str().unwrap().into());
        let item = &recorded.vector["calls"][0]["request"]["Item"];
        by_powertools.fingerprint =
            item["validation"]["S"].as_str().map(lambda_idempotency_core::record::Fingerprint::new);
        let write = Write::new(key, Guard::Absent, Some(by_powertools));
        world.store.write(&[write], Timestamp::from_secs(1_800_000_000)).await;
        let run = recorded.run(&world, json!("again")).await;
        assert_eq!((run.result, run.replayed), (result, true), "{}", recorded.name());
    }
}

#[tokio::test]
async fn tenants_are_refused_because_powertools_keys_do_not_contain_them() {
    let powertools = PowertoolsKeys::python("p");
    for (powertools, served) in
        [(powertools.clone(), false), (powertools.accept_collisions(), true)]
    {
        let world = World::instant();
        let operation = Operation::new("place").key("detail.id").powertools(powertools);
        let handler = async |_: Value, _: Call| Ok::<u32, Failure>(1);
        let function = world.with_handler(Invoke::new(), &operation, handler);
        let mut context = world.context();
        context.tenant_id = Some("acme".to_owned());
        let is_ok = serve(function, r#"{"detail":{"id":"a"}}"#, context).await.is_ok();
        assert_eq!(is_ok, served);
    }
}

#[tokio::test]
async fn sqs_records_have_the_keys_of_a_powertools_record_handler() {
    let world = World::instant();
    let operation =
        Operation::new("place").powertools(PowertoolsKeys::python("orders-fn.app.process"));
    let source = Sqs::new().key(record("messageId"));
    let function = world.on(source, &operation);
    let event = json!({ "Records": [{
        "messageId": "A-1", "receiptHandle": "r", "body": r#"{"id":"a"}"#, "attributes": {},
        "messageAttributes": {}, "md5OfBody": "", "eventSource": "aws:sqs",
        "eventSourceARN": crate::support::QUEUE, "awsRegion": "eu-west-1",
    }] });
    assert!(world.returned(&function, &event).await.is_empty());
    // The digest of "A-1", as recorded for `key_jmespath_field`.
    let key = Key::from_text("orders-fn.app.process#35e4083ba11d7d06184c72e37b6428b7");
    assert_eq!(stored(&world, &key).await.unwrap().status, Status::Completed);
}
