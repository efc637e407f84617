//! `run` with results in another form: work is done once, whatever cannot be stored or read.

use std::{
    convert::Infallible,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lambda_idempotency::{
    Idempotency, Mode, Operation, Run, RunContext, RunError, error::ResultLost, policy::OnOutage,
    store::Cache,
};
use lambda_idempotency_core::{
    browse::Browse as _,
    clock::{Clock as _, SystemClock, Timestamp},
    memory::MemoryStore,
    record::Status,
    store::Store as _,
    store::{StoreErrorKind, Write},
};
use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};
use lambda_idempotency_testkit::faults::{Fault as StoreFault, FaultyStore};

use crate::bucket::{Bucket, DOWN, Fault};

/// A function whose work is counted. Each call is one of another process: nothing is cached.
struct World {
    records: Arc<MemoryStore>,
    bucket: Bucket,
    key: u8,
    calls: AtomicU32,
}

impl World {
    fn new() -> Self {
        Self { records: Arc::default(), bucket: Bucket::new(), key: 1, calls: AtomicU32::new(0) }
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    async fn report(&self) -> Result<Run<Vec<u32>>, RunError> {
        let key = EncryptionKey::new("k", &[self.key; 32]).unwrap();
        let store = Results::new(Arc::clone(&self.records))
            .encrypt_with(LocalKeys::new(key))
            .offload_above(1000, self.bucket.clone());
        let operation = Operation::new("report").key("id").on_outage(OnOutage::RunUnprotected);
        Idempotency::new(store)
            .with_cache(Cache::off())
            .run(
                &operation,
                &serde_json::json!({"id": 1}),
                &RunContext::without_deadline(),
                async |_| {
                    self.calls.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, Infallible>(vec![7; 5000])
                },
            )
            .await
    }
}

#[tokio::test]
async fn a_later_call_gets_the_result() {
    let world = World::new();
    assert!(!world.report().await.unwrap().replayed);
    assert_eq!(world.bucket.kept.len(), 1);
    let again = world.report().await.unwrap();
    assert_eq!((again.result, again.replayed, world.calls()), (vec![7; 5000], true, 1));
}

#[tokio::test(start_paused = true)]
async fn a_completion_is_recorded_while_the_result_store_is_down() {
    for fault in DOWN {
        let world = World::new();
        world.bucket.fault(fault);
        let first = world.report().await.unwrap();
        assert!(first.recorded && first.result.len() == 5000, "{fault:?}");
        world.bucket.fault(Fault::None);
        let later = world.report().await.unwrap_err();
        assert!(matches!(later, RunError::ResultLost(ResultLost::NotKept)), "{fault:?}: {later}");
        assert_eq!(world.calls(), 1);
    }
}
/// `OnOutage::RunUnprotected` is about keys of which nothing is known. This one is known to be done: neither a lost
/// connection nor a mistake of its author is an outage of the records.
#[tokio::test(start_paused = true)]
async fn work_is_not_done_again_because_its_result_cannot_be_read_now() {
    let world = World::new();
    world.report().await.unwrap();
    for fault in DOWN {
        world.bucket.fault(fault);
        let error = world.report().await.unwrap_err();
        assert!(error.is_transient(), "{fault:?}: {error}");
        let RunError::Store(error) = error else { panic!("{fault:?}: {error}") };
        assert_eq!(error.kind(), StoreErrorKind::ResultUnavailable, "{fault:?}");
        world.bucket.fault(Fault::None);
        assert!(world.report().await.unwrap().replayed);
    }
    assert_eq!(world.calls(), 1);
}
/// Keys are taken away when the retention of their results is over, and some stores keep expired records.
#[tokio::test]
async fn after_the_retention_work_is_done_anew_although_the_key_of_its_result_is_gone() {
    let mut world = World::new();
    world.report().await.unwrap();
    let (one, soon) = (NonZeroUsize::MIN, SystemClock.now().plus(Duration::from_secs(5)));
    let (key, _) = world.records.page(None, one, soon).await.unwrap().items.remove(0);
    let found = world.records.read(std::slice::from_ref(&key), soon).await.remove(0);
    let mut record = found.unwrap().unwrap();
    record.expires_at = Timestamp::from_secs(1);
    world.records.insert(key, record);
    world.key = 2;
    assert!(!world.report().await.unwrap().replayed);
    assert_eq!(world.calls(), 2);
}

#[tokio::test]
async fn work_is_not_done_again_because_its_result_cannot_be_decrypted() {
    let mut world = World::new();
    world.report().await.unwrap();
    world.key = 2;
    let error = world.report().await.unwrap_err();
    assert!(!error.is_transient(), "{error}");
    assert!(matches!(&error, RunError::Store(e) if e.kind() == StoreErrorKind::Corrupt));
    world.key = 1;
    assert!(world.report().await.unwrap().replayed);
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn a_result_that_was_removed_counts_as_not_kept() {
    let world = World::new();
    world.report().await.unwrap();
    world.bucket.kept.clear();
    let error = world.report().await.unwrap_err();
    assert!(matches!(error, RunError::ResultLost(ResultLost::NotKept)), "{error}");
    assert_eq!(world.calls(), 1);
}

/// The answer to the completion is lost, and the completion that the worker finds then has a result that cannot be read now.
/// The worker has its result, and the process answers others with it.
#[tokio::test]
async fn a_completion_whose_answer_was_lost_answers_others_of_the_process_although_it_cannot_be_read()
 {
    let (bucket, records) = (Bucket::new(), FaultyStore::new(MemoryStore::new()));
    records.inject(StoreFault::lose_answer().that_writes(Status::Completed));
    let (is_down, completed) = (bucket.clone(), |write: &Write| {
        write.record.as_ref().is_some_and(|record| record.status == Status::Completed)
    });
    records.after(move |writes, _| {
        if writes.iter().any(completed) {
            is_down.fault(Fault::Fails);
        }
    });
    let idempotency = Idempotency::new(Results::new(records).offload_above(1000, bucket.clone()));
    let operation = Operation::new("report").key("id");
    let report = async || {
        let work = async |_| Ok::<_, Infallible>(vec![7; 5000]);
        let payload = serde_json::json!({"id": 1});
        idempotency.run(&operation, &payload, &RunContext::without_deadline(), work).await
    };
    assert!(report().await.unwrap().recorded);
    let while_down = report().await.unwrap();
    assert_eq!((while_down.result, while_down.replayed), (vec![7; 5000], true));
    bucket.fault(Fault::None);
    let later = report().await.unwrap();
    assert_eq!((later.result, later.replayed), (vec![7; 5000], true));
}

/// Its result was left out, because it does not answer this payload.
#[tokio::test]
async fn a_completion_of_another_payload_that_ended_first_is_not_remembered_without_its_result() {
    let (bucket, records) = (Bucket::new(), Arc::new(MemoryStore::new()));
    let process =
        || Idempotency::new(Results::new(Arc::clone(&records)).offload_above(1000, bucket.clone()));
    let operation = Operation::new("report").key("id").fingerprint("v").mode(Mode::Optimistic);
    let (operation, one, two) = (&operation, process(), process());
    let report = async |process: &Idempotency, v: u32, is_overtaken: bool| {
        let work = async |_| {
            if is_overtaken {
                let payload = serde_json::json!({"id": 1, "v": 2});
                let work = async |_| Ok::<_, Infallible>(vec![2; 5000]);
                let run = two.run(operation, &payload, &RunContext::without_deadline(), work).await;
                assert!(run.unwrap().recorded);
                bucket.fault(Fault::Fails);
            }
            Ok::<_, Infallible>(vec![v; 5000])
        };
        let payload = serde_json::json!({"id": 1, "v": v});
        process.run(operation, &payload, &RunContext::without_deadline(), work).await
    };
    let first = report(&one, 1, true).await;
    assert!(!first.is_ok_and(|run| run.recorded));
    bucket.fault(Fault::None);
    let again = report(&one, 2, false).await.unwrap();
    assert_eq!((again.result, again.replayed), (vec![2; 5000], true));
}
