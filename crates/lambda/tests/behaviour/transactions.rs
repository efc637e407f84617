//! Operations whose effects are committed with their completion.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use aws_sdk_dynamodb::types::{AttributeValue, Delete, TransactWriteItem};
use lambda_idempotency::{
    Call, CallExt as _, ConfigError, Failure, Idempotency, Mode, Operation, RunContext,
    clock::Timestamp, error::TransactError, source::Sqs, store::*, testing,
};
use lambda_idempotency_core::memory::{MemoryEffects, MemoryStore};
use serde_json::{Value, json};

use crate::support::{World, batch, nothing, order};

fn deposits() -> Operation {
    Operation::new("deposit").key("id").mode(Mode::Transactional)
}

/// A store without transactions.
struct Plain(MemoryStore);

impl Store for Plain {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn write<'a>(&'a self, writes: &'a [Write], until: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        self.0.write(writes, until)
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        until: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.0.read(keys, until)
    }
}

fn refused(result: Result<impl Sized, ConfigError>, reason: &str) {
    let error = result.map(drop).unwrap_err();
    assert!(matches!(error, ConfigError::Mode(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("operation `deposit`") && text.contains(reason), "{text}");
}

#[tokio::test]
async fn an_operation_that_could_not_commit_is_refused_at_the_start() {
    let plain = Idempotency::new(Plain(MemoryStore::new()));
    refused(plain.on(Sqs::new(), &deposits(), nothing), "its store has no transactions");
    assert!(plain.on(Sqs::new(), &Operation::new("others").key("id"), nothing).is_ok());
    let (operation, payload) = (deposits(), json!({ "id": "a" }));
    let run = plain.run(&operation, &payload, &RunContext::without_deadline(), async |_: Call| {
        Ok::<_, Failure>(())
    });
    let error = run.await.unwrap_err().to_string();
    assert!(error.contains("use `DynamoDbStore`"), "{error}");
}

#[tokio::test]
async fn what_a_handler_collects_is_committed_once() {
    for operation in [deposits(), deposits().mode(Mode::Optimistic)] {
        committed_once(operation).await;
    }
}

async fn committed_once(operation: Operation) {
    let (world, deposited) = (World::new(), Arc::new(AtomicUsize::new(0)));
    let counts = Arc::clone(&deposited);
    let deposit = move |_: Value, call: Call| {
        let counts = Arc::clone(&counts);
        async move {
            call.collect(|effects: &mut MemoryEffects| {
                effects.add(move || {
                    counts.fetch_add(1, Ordering::SeqCst);
                });
            })?;
            Ok::<_, Failure>(())
        }
    };
    let function = world.with_handler(Sqs::new(), &operation, deposit);
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "")]);
    for _ in 0..2 {
        let answer = world.clock.drive(testing::invoke(&function, &event)).await.unwrap();
        assert_eq!(answer, json!({ "batchItemFailures": [] }));
    }
    assert_eq!(deposited.load(Ordering::SeqCst), 2);
}

fn delete(id: &str) -> TransactWriteItem {
    let id = AttributeValue::S(id.to_owned());
    let delete = Delete::builder().table_name("orders").key("id", id).build().unwrap();
    TransactWriteItem::builder().delete(delete).build()
}

#[tokio::test]
async fn effects_of_another_store_fail_the_handler() {
    let world = World::new();
    let handler =
        |_: Value, call: Call| async move { Ok::<_, Failure>(call.transact(delete("a"))?) };
    let function = world.with_handler(Sqs::new(), &deposits(), handler);
    let event = batch([order("m-1", "a", "")]);
    let answer = world.clock.drive(testing::invoke(&function, &event)).await.unwrap();
    assert_eq!(answer["batchItemFailures"][0]["itemIdentifier"], "m-1");
}

#[test]
fn a_call_says_why_it_does_not_collect() {
    let plain = Call::test("a").transact(delete("a")).unwrap_err();
    assert_eq!(plain, TransactError::NotCollected(CollectError::NotTransactional));
    assert!(plain.to_string().contains("`.mode(Mode::Transactional)`"), "{plain}");
    let (call, _collected) = Call::test("a").with_effects::<MemoryEffects>();
    let other = call.transact(delete("a")).unwrap_err().to_string();
    assert!(other.contains("MemoryEffects") && other.contains("DynamoDbEffects"), "{other}");
    let (call, _collected) =
        Call::test("a").with_effects::<lambda_idempotency::store::dynamodb::DynamoDbEffects>();
    assert_eq!(call.transact(delete("a")), Ok(()));
    let twice = call.transact(delete("a")).unwrap_err();
    assert!(matches!(twice, TransactError::Unfit(_)), "{twice}");
}
