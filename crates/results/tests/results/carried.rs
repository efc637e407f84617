//! What a record carries besides its result: finished steps, messages, a payload. They are encrypted if results are.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::encrypted::Keys;
use crate::support::{
    FIELDS, Field, carrying, completed, encrypted, get, key, keys, moved, owner, put, soon,
};
use lambda_idempotency::{
    Call, Failure, Idempotency, Operation, RunContext, RunError,
    outbox::{MemorySender, Message, OutgoingMessage, Relay, SendError, Sender},
    store::Cache,
};
use lambda_idempotency_core::{
    browse::Browse as _,
    clock::{BoxFuture, Timestamp},
    key::Key,
    memory::MemoryStore,
    record::{IdempotencyRecord, Json, Status},
    store::{Guard, RecordVersion, Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_results::{BoxError, EncryptionKey, KeyProvider, MemoryResults, Results};

/// All of them but the result.
const TEXTS: [Field; 3] = [FIELDS[0], FIELDS[1], FIELDS[2]];

#[tokio::test]
async fn what_is_stored_does_not_contain_the_texts() {
    for field in FIELDS {
        let store = encrypted();
        put(&store, &carrying(field)).await;
        let mut inner = get(store.store()).await.unwrap().unwrap();
        let text = field(&mut inner).clone().unwrap();
        assert!(text.starts_with("\"lambda-idempotency:1 aes-256-gcm=k1 "), "{}", &*text);
        assert!(!text.contains("s3cr3t"));
        assert_eq!(get(&store).await.unwrap(), Some(carrying(field)));
        let found = put(&store, &completed("2")).await;
        assert!(matches!(found, Verdict::Found(Some(found)) if found == carrying(field)));
    }
}

#[tokio::test]
async fn long_texts_are_compressed_before_they_are_encrypted() {
    for field in TEXTS {
        let store = encrypted().compress_above(1024).max_bytes(100);
        let mut long = carrying(field);
        *field(&mut long) = Some(crate::support::long(50_000).into());
        put(&store, &long).await;
        let mut inner = get(store.store()).await.unwrap().unwrap();
        assert!(field(&mut inner).clone().unwrap().len() < 500);
        assert_eq!(get(&store).await.unwrap(), Some(long), "`max_bytes` is for results");
    }
}

#[tokio::test]
async fn without_encryption_texts_are_stored_as_they_are() {
    for field in TEXTS {
        let plain = Results::new(MemoryStore::new())
            .compress_above(0)
            .offload_above(0, MemoryResults::default());
        put(&plain, &carrying(field)).await;
        assert_eq!(get(plain.store()).await.unwrap(), Some(carrying(field)));
        let store = encrypted();
        store.store().insert(key(), carrying(field));
        assert_eq!(get(&store).await.unwrap(), Some(carrying(field)), "what was there before");
    }
}

/// A payload is a text of the application, so it may look like anything.
#[tokio::test]
async fn a_text_that_looks_like_a_stored_form_is_read_as_it_was_written() {
    let text = "\"lambda-idempotency:1 zlib AAAA\"";
    for store in [encrypted(), Results::new(MemoryStore::new())] {
        let mut record = carrying(FIELDS[2]);
        record.payload = Some(text.into());
        put(&store, &record).await;
        assert_eq!(get(&store).await.unwrap(), Some(record));
    }
}

#[tokio::test]
async fn a_text_cannot_be_moved_to_another_key_field_or_completion() {
    for (nth, field) in FIELDS.into_iter().enumerate() {
        let store = encrypted();
        put(&store, &carrying(field)).await;
        let mut inner = get(store.store()).await.unwrap().unwrap();
        let text = field(&mut inner).clone();
        let is_refused = async |key: Key, record: IdempotencyRecord| {
            store.store().insert(key.clone(), record);
            let read = store.read(&[key], soon()).await.pop().unwrap();
            read.is_err_and(|error| error.kind() == StoreErrorKind::Corrupt)
        };
        assert!(is_refused(Key::from_text("report#2"), inner.clone()).await);
        for (_, other_field) in FIELDS.into_iter().enumerate().filter(|(at, _)| *at != nth) {
            let mut other = carrying(other_field);
            *other_field(&mut other) = text.clone();
            assert!(is_refused(key(), other).await);
        }
        let mut of_another_claim = inner;
        of_another_claim.owner = Some(owner(2));
        // Steps and payloads are carried from claim to claim.
        assert_eq!(is_refused(key(), of_another_claim).await, nth % 2 == 1);
    }
}

/// `records release` does not decrypt what it keeps.
#[tokio::test]
async fn steps_that_a_tool_without_keys_has_carried_on_are_read() {
    let store = encrypted();
    let mut claim = carrying(FIELDS[0]);
    claim.status = Status::InProgress;
    put(&store, &claim).await;
    let mut released = get(store.store()).await.unwrap().unwrap();
    released.last_owner = released.owner.take();
    store.store().insert(key(), released);
    let read = get(&store).await.unwrap().unwrap();
    assert_eq!(read.steps, claim.steps);
}

#[tokio::test]
async fn a_record_whose_texts_cannot_be_read_is_an_error_until_it_has_expired() {
    for field in TEXTS {
        let store = encrypted();
        put(&store, &carrying(field)).await;
        let mut inner = get(store.store()).await.unwrap().unwrap();
        let other = moved(&store, Results::new(MemoryStore::new()).decrypt_with(keys(2))).await;
        let error = get(&other).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert!(error.to_string().contains("its key has the id of another key"), "{error}");
        // Also for the claim that wrote it: without its messages, it would be another record.
        for claim in [completed("2"), carrying(field)] {
            let verdict = put(&other, &claim).await;
            assert!(matches!(verdict, Verdict::Unknown(error) if !error.may_have_applied()));
        }
        inner.expires_at = Timestamp::from_secs(1);
        other.store().insert(key(), inner);
        assert!(get(&other).await.unwrap().is_some(), "its key can be claimed again");
    }
}

/// Counts how often something is encrypted.
#[derive(Default)]
struct Counting {
    calls: AtomicU32,
}

impl KeyProvider for Counting {
    fn current(&self, deadline: Timestamp) -> BoxFuture<'_, Result<EncryptionKey, BoxError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { keys(1).current(deadline).await })
    }

    fn find<'a>(
        &'a self,
        id: &'a str,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EncryptionKey>, BoxError>> {
        Box::pin(async move { keys(1).find(id, deadline).await })
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_key_provider_nothing_is_stored_unencrypted() {
    for field in FIELDS {
        for keys in [Keys::Fail, Keys::Hang] {
            let store = Results::new(MemoryStore::new()).encrypt_with(keys);
            let Verdict::Unknown(error) = put(&store, &carrying(field)).await else { panic!() };
            assert_eq!(error.kind(), StoreErrorKind::ResultUnavailable, "{keys:?}");
            assert!(error.is_transient() && !error.may_have_applied());
            assert!(get(store.store()).await.unwrap().is_none());
        }
    }
}
/// A sender that can be out of order.
#[derive(Default)]
struct Wire {
    kept: MemorySender,
    is_cut: AtomicBool,
}

impl Sender for Wire {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        if !self.is_cut.load(Ordering::SeqCst) {
            return self.kept.send(messages, call_deadline);
        }
        let cut = messages.iter().map(|_| Err(SendError::new("the test has cut the wire")));
        let cut = cut.collect();
        Box::pin(async move { cut })
    }
}

/// The only record of a store, as it is stored.
async fn only(records: &MemoryStore) -> IdempotencyRecord {
    let page = records.page(None, NonZeroUsize::MIN, soon()).await.unwrap();
    let (key, _) = page.items.into_iter().next().unwrap();
    records.read(&[key], soon()).await.pop().unwrap().unwrap().unwrap()
}

/// A function that publishes a message and returns a result that is kept elsewhere.
struct World {
    records: Arc<MemoryStore>,
    bucket: MemoryResults,
    keys: Arc<Counting>,
    wire: Arc<Wire>,
    calls: AtomicU32,
}

impl World {
    fn new() -> Self {
        Self {
            records: Arc::default(),
            bucket: MemoryResults::default(),
            keys: Arc::default(),
            wire: Arc::default(),
            calls: AtomicU32::new(0),
        }
    }

    fn store(&self) -> Results<Arc<MemoryStore>> {
        Results::new(Arc::clone(&self.records))
            .encrypt_with(Arc::clone(&self.keys))
            .offload_above(1000, self.bucket.clone())
    }

    async fn place(&self) -> Result<bool, RunError> {
        let idempotency = Idempotency::new(self.store())
            .with_sender(Arc::clone(&self.wire))
            .with_cache(Cache::off());
        let operation = Operation::new("place").key("id");
        let place = async |call: Call| {
            self.calls.fetch_add(1, Ordering::SeqCst);
            call.publish(Message::new("parcels", "s3cr3t"))?;
            Ok::<_, Failure>(vec![7; 5000])
        };
        let (order, context) = (serde_json::json!({"id": 1}), RunContext::without_deadline());
        let run = idempotency.run(&operation, &order, &context, place).await?;
        assert_eq!(run.result, vec![7; 5000]);
        Ok(run.replayed)
    }

    async fn stored(&self) -> IdempotencyRecord {
        only(&self.records).await
    }
}

#[tokio::test]
async fn a_result_is_encoded_once_although_its_record_is_written_again_without_its_messages() {
    let world = World::new();
    assert!(!world.place().await.unwrap());
    assert_eq!((world.wire.kept.sent().len(), world.bucket.len()), (1, 1));
    assert_eq!(world.keys.calls.load(Ordering::SeqCst), 2, "for the outbox and for the result");
    assert_eq!(world.stored().await.outbox, None);
    assert!(world.place().await.unwrap(), "the result is there");
}

#[tokio::test]
async fn a_redelivery_and_a_relay_send_encrypted_messages_and_keep_the_result() {
    for relayed in [false, true] {
        let world = World::new();
        world.wire.is_cut.store(true, Ordering::SeqCst);
        assert!(matches!(world.place().await, Err(RunError::Unsent(_))));
        let record = world.stored().await;
        assert!(!record.outbox.unwrap().contains("s3cr3t"));
        world.wire.is_cut.store(false, Ordering::SeqCst);
        if relayed {
            let relay = Relay::new(world.store(), Arc::clone(&world.wire));
            let relay = relay.with_min_age(Duration::ZERO);
            let relayed = relay.run(None, soon()).await.unwrap();
            assert_eq!((relayed.sent, relayed.unrecorded), (1, 0));
        } else {
            assert!(world.place().await.unwrap());
        }
        let sent = world.wire.kept.sent();
        assert_eq!(sent[0].message().body(), "s3cr3t");
        let marked = world.stored().await;
        assert_eq!((marked.outbox, marked.result), (None, record.result), "the same form");
        assert_eq!(world.bucket.len(), 1);
        assert!(world.place().await.unwrap());
        assert_eq!((world.calls.load(Ordering::SeqCst), world.wire.kept.sent().len()), (1, 1));
    }
}

/// Each renewal writes the payload and the steps again.
#[tokio::test]
async fn a_text_that_has_not_changed_is_encrypted_once_for_its_claim() {
    let keys = Arc::new(Counting::default());
    let store = Results::new(MemoryStore::new()).encrypt_with(Arc::clone(&keys));
    let asked = || keys.calls.load(Ordering::SeqCst);
    let mut claim = carrying(FIELDS[2]);
    claim.status = Status::InProgress;
    claim.lease_until = Some(Timestamp::from_secs(3_000_000_000));
    put(&store, &claim).await;
    assert_eq!(asked(), 1, "the payload");
    let renew = async |claim: &mut IdempotencyRecord, steps: &Json| {
        let before = RecordVersion::of(claim);
        claim.lease_until = claim.lease_until.map(|until| until.plus(Duration::from_secs(1)));
        claim.steps = Some(steps.clone());
        let renewal = Write::new(key(), Guard::Unchanged(before), Some(claim.clone()));
        let verdict = store.write(&[renewal], soon()).await.pop().unwrap();
        assert!(matches!(verdict, Verdict::Written), "{verdict:?}");
        assert_eq!(get(&store).await.unwrap().as_ref(), Some(&*claim));
    };
    let steps = Json::from("{\"s3cr3t\":1}");
    for _ in 0..3 {
        renew(&mut claim, &steps).await;
    }
    assert_eq!(asked(), 2, "and the steps");
    renew(&mut claim, &"{\"s3cr3t\":2}".into()).await;
    assert_eq!(asked(), 3, "another step");
    let mut released = claim.clone();
    released.last_owner = released.owner.take();
    released.lease_until = Some(Timestamp::from_millis(1));
    let release = Write::new(key(), Guard::OwnedBy(owner(1)), Some(released.clone()));
    assert!(matches!(store.write(&[release], soon()).await[..], [Verdict::Written]));
    assert_eq!(asked(), 3, "a release carries the same texts");
    assert_eq!(get(&store).await.unwrap(), Some(released.clone()));
    let next = Write::new(key(), Guard::Unchanged(RecordVersion::of(&released)), Some(claim));
    assert!(matches!(store.write(&[next], soon()).await[..], [Verdict::Written]));
    assert_eq!(asked(), 3, "and so does a claim that carries them on");
}
