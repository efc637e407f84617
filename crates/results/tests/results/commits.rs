//! Transactions with results in another form: each time that a commit is sent, its result is encrypted anew, so no two
//! requests are alike. What the handler collected is applied once all the same.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use lambda_idempotency::{
    Call, Failure, Idempotency, Mode, Operation, Run, RunContext, RunError, store::Cache,
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    memory::{MemoryEffects, MemoryStore},
    record::Status,
    store::StoreErrorKind,
};
use lambda_idempotency_results::{BoxError, EncryptionKey, KeyProvider, Results};
use lambda_idempotency_testkit::faults::{Fault, FaultyStore};

/// A key provider that answers once, or always.
struct Keys {
    key: EncryptionKey,
    answers_once: bool,
    has_answered: AtomicBool,
}

impl KeyProvider for Keys {
    fn current(&self, _: Timestamp) -> BoxFuture<'_, Result<EncryptionKey, BoxError>> {
        Box::pin(async {
            if self.has_answered.swap(true, Ordering::SeqCst) && self.answers_once {
                return Err("no connection".into());
            }
            Ok(self.key.clone())
        })
    }

    fn find<'a>(
        &'a self,
        _: &'a str,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EncryptionKey>, BoxError>> {
        Box::pin(async { Ok(Some(self.key.clone())) })
    }
}

struct World {
    records: FaultyStore<MemoryStore>,
    applied: Arc<AtomicU32>,
    answers_once: bool,
}

impl World {
    fn new(answers_once: bool) -> Self {
        let records = FaultyStore::new(MemoryStore::new());
        Self { records, applied: Arc::default(), answers_once }
    }

    async fn deposit(&self) -> Result<Run<Vec<u32>>, RunError> {
        let keys = Keys {
            key: EncryptionKey::new("k", &[1; 32]).unwrap(),
            answers_once: self.answers_once,
            has_answered: AtomicBool::new(false),
        };
        let store = Results::new(self.records.clone()).encrypt_with(keys);
        let operation = Operation::new("deposit").key("id").mode(Mode::Transactional);
        let (payload, context) = (serde_json::json!({"id": 1}), RunContext::without_deadline());
        let handler = async |call: Call| {
            let applied = Arc::clone(&self.applied);
            call.collect(|effects: &mut MemoryEffects| {
                effects.add(move || {
                    applied.fetch_add(1, Ordering::SeqCst);
                });
            })?;
            Ok::<_, Failure>(vec![7; 100])
        };
        let idempotency = Idempotency::new(store).with_cache(Cache::off());
        idempotency.run(&operation, &payload, &context, handler).await
    }

    fn applied(&self) -> u32 {
        self.applied.load(Ordering::SeqCst)
    }
}

/// In the last row the second request has no result, because there is no key for it any more.
#[tokio::test(start_paused = true)]
async fn a_commit_that_is_encrypted_again_is_applied_once() {
    for (fault, keys_answer_once) in [
        (Fault::lose_answer(), false),
        (Fault::lose_answer().times(3), false),
        (Fault::duplicate(1), false),
        (Fault::refuse(StoreErrorKind::Unavailable), false),
        (Fault::lose_answer(), true),
    ] {
        let world = World::new(keys_answer_once);
        world.records.inject(fault.that_writes(Status::Completed));
        let first = world.deposit().await.unwrap();
        assert!(!first.replayed && first.recorded);
        assert_eq!(world.applied(), 1);
        let later = world.deposit().await.unwrap();
        assert_eq!((later.result, later.replayed, world.applied()), (vec![7; 100], true, 1));
    }
}
