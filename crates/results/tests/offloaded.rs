//! Results that are kept elsewhere: what is where, and what happens while it cannot be reached.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod support;

use std::{
    future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock as _, SystemClock, Timestamp},
    key::Key,
    memory::MemoryStore,
    record::{Fingerprint, IdempotencyRecord, Status},
    store::{Guard, Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_results::{
    BoxError, EncryptionKey, LocalKeys, MemoryResults, ResultName, ResultStore, Results,
};
use support::{completed, get, key, long, owner, put, result, soon, stored, tamper};

/// What goes wrong with a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Fails,
    Hangs,
    Panics,
    /// Each call takes a second.
    Slow,
}

/// A bucket with faults, which shows what it has.
#[derive(Clone)]
struct Bucket {
    kept: MemoryResults,
    fault: Arc<Mutex<Fault>>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    last: Arc<Mutex<Option<Put>>>,
}

/// A content, and its expiry.
type Put = (Vec<u8>, Timestamp);

impl Bucket {
    fn new() -> Self {
        Self {
            kept: MemoryResults::default(),
            fault: Arc::new(Mutex::new(Fault::None)),
            running: Arc::default(),
            most: Arc::default(),
            last: Arc::default(),
        }
    }

    fn fault(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    async fn call(&self) -> Result<(), BoxError> {
        let fault = *self.fault.lock().unwrap();
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        let answer = match fault {
            Fault::None => Ok(()),
            Fault::Fails => Err("no connection".into()),
            Fault::Hangs => future::pending().await,
            Fault::Panics => panic!("a mistake of its author"),
            Fault::Slow => {
                SystemClock.sleep(Duration::from_secs(1)).await;
                Ok(())
            }
        };
        self.running.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

impl ResultStore for Bucket {
    fn put<'a>(
        &'a self,
        name: &'a ResultName,
        content: Vec<u8>,
        expires_at: Timestamp,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            self.call().await?;
            *self.last.lock().unwrap() = Some((content.clone(), expires_at));
            self.kept.put(name, content, expires_at, deadline).await
        })
    }

    fn get<'a>(
        &'a self,
        name: &'a ResultName,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>> {
        Box::pin(async move {
            self.call().await?;
            self.kept.get(name, deadline).await
        })
    }
}

fn over(bucket: &Bucket) -> Results<MemoryStore> {
    Results::new(MemoryStore::new()).offload_above(4096, bucket.clone())
}

#[tokio::test]
async fn a_large_result_is_kept_elsewhere_and_a_small_one_in_its_record() {
    for (bytes, is_elsewhere) in [(4090, false), (4110, true)] {
        let bucket = Bucket::new();
        let store = over(&bucket);
        let record = completed(long(bytes));
        put(&store, &record).await;
        assert_eq!(bucket.kept.len(), usize::from(is_elsewhere));
        assert_eq!(stored(&store).await.unwrap().len() < 200, is_elsewhere);
        assert_eq!(get(&store).await.unwrap(), Some(record.clone()));
        if let Some((_, expires_at)) = *bucket.last.lock().unwrap() {
            assert_eq!(expires_at, record.expires_at);
        }
    }
}

#[tokio::test]
async fn what_is_small_when_it_is_compressed_stays_in_its_record() {
    let bucket = Bucket::new();
    let store = over(&bucket).compress_above(1024);
    put(&store, &completed(long(100_000))).await;
    assert!(bucket.kept.is_empty());
    assert_eq!(result(&store).await, Some(long(100_000)));
}

#[tokio::test]
async fn what_is_kept_elsewhere_is_encrypted_too() {
    let bucket = Bucket::new();
    let keys = LocalKeys::new(EncryptionKey::new("k1", &[1; 32]).unwrap());
    let store = over(&bucket).encrypt_with(keys);
    let secret = format!("\"{}\"", "4111".repeat(2000));
    put(&store, &completed(secret.clone())).await;
    let (object, _) = bucket.last.lock().unwrap().clone().unwrap();
    assert!(object.starts_with(b"lambda-idempotency:1 aes-256-gcm=k1 "));
    assert!(!object.windows(4).any(|part| part == b"4111"));
    assert_eq!(result(&store).await, Some(secret));
}

#[tokio::test]
async fn a_changed_object_is_not_read() {
    let bucket = Bucket::new();
    let keys = LocalKeys::new(EncryptionKey::new("k1", &[1; 32]).unwrap());
    let store = over(&bucket).encrypt_with(keys).compress_above(0).offload_above(0, bucket.clone());
    put(&store, &completed("\"secret\"")).await;
    let (object, expires_at) = bucket.last.lock().unwrap().clone().unwrap();
    let name = ResultName::new(&key(), &object);
    for at in 0..object.len() {
        let mut changed = object.clone();
        changed[at] ^= 1;
        bucket.kept.put(&name, changed, expires_at, soon()).await.unwrap();
        let error = get(&store).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "byte {at}");
    }
    bucket.kept.put(&name, vec![b' '; 9_000_000], expires_at, soon()).await.unwrap();
    let error = get(&store).await.unwrap_err();
    assert!(error.to_string().contains("larger than 8388608 bytes"), "{error}");
}

/// A worker lost its lease, and stores a result although its successor has completed the key.
#[tokio::test]
async fn a_fenced_worker_does_not_replace_the_result_of_its_successor() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    let mut winners = completed(long(5000));
    winners.owner = Some(owner(2));
    put(&store, &winners).await;
    let late = Write::new(key(), Guard::OwnedBy(owner(1)), Some(completed(long(6000))));
    match store.write(&[late], soon()).await.pop().unwrap() {
        Verdict::Found(Some(found)) => assert_eq!(found, winners),
        other => panic!("{other:?}"),
    }
    assert_eq!(get(&store).await.unwrap(), Some(winners));
    assert_eq!(bucket.kept.len(), 2, "nothing refers to the result of the fenced worker");
}

/// A completed record is final, also for the claim that completed it, and so is its result.
#[tokio::test]
async fn a_later_result_of_the_same_claim_does_not_replace_the_first() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    let first = completed(long(5000));
    put(&store, &first).await;
    let other = Write::new(key(), Guard::OwnedBy(owner(1)), Some(completed(long(6000))));
    match store.write(&[other], soon()).await.pop().unwrap() {
        Verdict::Found(Some(found)) => assert_eq!(found, first),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_reference_of_another_record_is_not_followed() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    put(&store, &completed(long(5000))).await;
    let other = Key::from_text("report#2");
    store.store().insert(other.clone(), get(store.store()).await.unwrap().unwrap());
    let error = store.read(&[other], soon()).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn a_write_that_is_sent_again_leaves_one_object() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    let record = completed(long(5000));
    put(&store, &record).await;
    assert!(matches!(put(&store, &record).await, Verdict::Found(Some(found)) if found == record));
    assert_eq!(bucket.kept.len(), 1);
}

#[tokio::test]
async fn a_result_that_is_gone_leaves_a_completed_record() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    put(&store, &completed(long(5000))).await;
    bucket.kept.clear();
    let record = get(&store).await.unwrap().unwrap();
    assert_eq!((record.status, record.result), (Status::Completed, None));
}

#[tokio::test]
async fn a_reference_is_an_error_where_the_result_store_is_not_known() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    put(&store, &completed(long(5000))).await;
    let other = Results::new(MemoryStore::new());
    other.store().insert(key(), get(store.store()).await.unwrap().unwrap());
    let error = get(&other).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(error.to_string().contains("add `offload_above`"), "{error}");
    let reads = Results::new(MemoryStore::new()).offload_above(usize::MAX, bucket.clone());
    reads.store().insert(key(), get(store.store()).await.unwrap().unwrap());
    assert_eq!(result(&reads).await, Some(long(5000)));
    tamper(&reads, "1").await;
    assert_eq!(result(&reads).await.as_deref(), Some("1"));
}

/// I13: half of the time is left for the completion without its result.
#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_put_is_refused_in_half_of_the_time() {
    for fault in [Fault::Fails, Fault::Hangs, Fault::Panics] {
        let bucket = Bucket::new();
        bucket.fault(fault);
        let store = over(&bucket);
        let begun = tokio::time::Instant::now();
        let Verdict::Unknown(error) = put(&store, &completed(long(5000))).await else { panic!() };
        assert!(begun.elapsed() <= Duration::from_millis(2600), "{:?}", begun.elapsed());
        assert_eq!(error.kind(), StoreErrorKind::ResultUnavailable);
        assert!(error.is_transient() && !error.may_have_applied());
        assert!(get(store.store()).await.unwrap().is_none(), "nothing refers to nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_result_store_is_down_a_completed_key_is_found_and_not_read() {
    for fault in [Fault::Fails, Fault::Hangs, Fault::Panics] {
        let bucket = Bucket::new();
        let store = over(&bucket);
        put(&store, &completed(long(5000))).await;
        bucket.fault(fault);
        let error = get(&store).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::ResultUnavailable);
        let mut claim = completed("1");
        (claim.owner, claim.result, claim.status) = (Some(owner(2)), None, Status::InProgress);
        let claim = Write::new(key(), Guard::Absent, Some(claim));
        let Verdict::Unknown(error) = store.write(&[claim], soon()).await.pop().unwrap() else {
            panic!("it was claimed")
        };
        assert_eq!(error.kind(), StoreErrorKind::ResultUnavailable);
        assert!(!error.may_have_applied());
    }
}

/// Its answer was lost, and the worker asks again.
#[tokio::test(start_paused = true)]
async fn while_the_result_store_is_down_a_worker_recognises_its_own_completion() {
    for fault in [Fault::Fails, Fault::Hangs, Fault::Panics] {
        let bucket = Bucket::new();
        let store = over(&bucket);
        put(&store, &completed(long(5000))).await;
        bucket.fault(fault);
        let mut without_result = completed("1");
        without_result.result = None;
        let again = Write::new(key(), Guard::OwnedBy(owner(1)), Some(without_result.clone()));
        let begun = tokio::time::Instant::now();
        match store.write(&[again], soon()).await.pop().unwrap() {
            Verdict::Found(Some(found)) => assert_eq!(found, without_result),
            other => panic!("{other:?}"),
        }
        let time = begun.elapsed();
        assert!(time <= Duration::from_millis(2600), "its answer is due soon: {time:?}");
    }
}

/// Other workers renew their leases in the same call, and have to learn in time whether they stand.
#[tokio::test(start_paused = true)]
async fn that_a_claim_is_over_is_known_in_half_of_the_time() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    put(&store, &completed(long(5000))).await;
    bucket.fault(Fault::Hangs);
    let other = Key::from_text("other");
    let mut held = completed("1");
    (held.owner, held.result, held.status) = (Some(owner(2)), None, Status::InProgress);
    store.store().insert(other.clone(), held.clone());
    let renews = |key| Write::new(key, Guard::OwnedBy(owner(2)), Some(held.clone()));
    let begun = tokio::time::Instant::now();
    let verdicts = store.write(&[renews(key()), renews(other)], soon()).await;
    assert!(begun.elapsed() <= Duration::from_millis(2600), "{:?}", begun.elapsed());
    assert!(matches!(&verdicts[..], [Verdict::Unknown(_), Verdict::Written]), "{verdicts:?}");
}

/// I5: a mistake in a result store is not one of the other records of the call.
#[tokio::test(start_paused = true)]
async fn a_result_store_that_panics_harms_no_other_record_of_the_call() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    put(&store, &completed(long(5000))).await;
    bucket.fault(Fault::Panics);
    let [large, small] = ["large", "small"].map(Key::from_text);
    let writes = [
        Write::new(large, Guard::Absent, Some(completed(long(5000)))),
        Write::new(small.clone(), Guard::Absent, Some(completed("1"))),
        Write::new(key(), Guard::OwnedBy(owner(2)), Some(completed("1"))),
    ];
    let verdicts = store.write(&writes, soon()).await;
    assert!(
        matches!(&verdicts[..], [Verdict::Unknown(put), Verdict::Written, Verdict::Unknown(found)]
            if put.kind() == StoreErrorKind::ResultUnavailable
                && found.kind() == StoreErrorKind::ResultUnavailable),
        "{verdicts:?}"
    );
    let found = store.read(&[key(), small], soon()).await;
    assert!(found[0].is_err() && found[1].as_ref().unwrap().is_some(), "{found:?}");
}

/// I9: an expired record is claimed anew, whatever has become of its result.
#[tokio::test(start_paused = true)]
async fn an_expired_record_whose_result_cannot_be_read_is_there_without_it() {
    let bucket = Bucket::new();
    let keys = LocalKeys::new(EncryptionKey::new("k1", &[1; 32]).unwrap());
    let store = over(&bucket).encrypt_with(keys);
    let mut expired = completed(long(5000));
    expired.expires_at = SystemClock.now();
    put(&store, &expired).await;
    assert_eq!(get(&store).await.unwrap(), Some(expired.clone()));
    expired.result = None;
    for fault in [Fault::Fails, Fault::Hangs, Fault::Panics] {
        bucket.fault(fault);
        assert_eq!(get(&store).await.unwrap(), Some(expired.clone()), "{fault:?}");
    }
    bucket.fault(Fault::None);
    let taken_away = Results::new(MemoryStore::new())
        .decrypt_with(LocalKeys::new(EncryptionKey::new("k2", &[2; 32]).unwrap()))
        .offload_above(4096, bucket.clone());
    taken_away.store().insert(key(), get(store.store()).await.unwrap().unwrap());
    assert_eq!(get(&taken_away).await.unwrap(), Some(expired.clone()));
    let mut claim = completed("1");
    (claim.owner, claim.result, claim.status) = (Some(owner(2)), None, Status::InProgress);
    let claim = Write::new(key(), Guard::Absent, Some(claim));
    match taken_away.write(&[claim], soon()).await.pop().unwrap() {
        Verdict::Found(Some(found)) => assert_eq!(found, expired),
        other => panic!("{other:?}"),
    }
}

/// Only a settled record answers with its result. Another program may leave one in a record that it gives up.
#[tokio::test]
async fn a_record_in_progress_is_there_although_its_result_cannot_be_read() {
    let keys = LocalKeys::new(EncryptionKey::new("k1", &[1; 32]).unwrap());
    let store = Results::new(MemoryStore::new()).encrypt_with(keys);
    let mut failed = completed("\"refused\"");
    failed.status = Status::PermanentlyFailed;
    put(&store, &failed).await;
    let mut released = get(store.store()).await.unwrap().unwrap();
    (released.status, released.owner) = (Status::InProgress, None);
    store.store().insert(key(), released.clone());
    released.result = None;
    assert_eq!(get(&store).await.unwrap(), Some(released));
}

/// I13: a completion waits for nobody.
#[tokio::test(start_paused = true)]
async fn no_other_write_waits_for_an_upload() {
    let bucket = Bucket::new();
    bucket.fault(Fault::Hangs);
    let store = over(&bucket);
    let other = Key::from_text("other");
    let writes = [
        Write::new(key(), Guard::Absent, Some(completed(long(5000)))),
        Write::new(other.clone(), Guard::Absent, Some(completed("1"))),
    ];
    let late = soon();
    let mut call = store.write(&writes, late);
    assert!(futures_util::poll!(&mut call).is_pending());
    let found = store.store().read(&[other], late).await.pop().unwrap();
    assert!(found.unwrap().is_some(), "it is stored while the other result is put");
    let verdicts = call.await;
    assert!(matches!(&verdicts[..], [Verdict::Unknown(_), Verdict::Written]), "{verdicts:?}");
}

/// I5: the duplicate is asked again by itself, and the new key is held meanwhile.
#[tokio::test(start_paused = true)]
async fn a_duplicate_whose_result_hangs_keeps_the_others_of_its_call_for_half_of_the_time() {
    let bucket = Bucket::new();
    let store = over(&bucket);
    put(&store, &completed(long(5000))).await;
    bucket.fault(Fault::Hangs);
    let other = Key::from_text("other");
    let claims = [key(), other.clone()].map(|key| Write::new(key, Guard::Absent, Some(claim())));
    let begun = tokio::time::Instant::now();
    let verdicts = store.write(&claims, soon()).await;
    assert!(begun.elapsed() <= Duration::from_millis(2600), "{:?}", begun.elapsed());
    assert!(matches!(&verdicts[..], [Verdict::Unknown(_), Verdict::Written]), "{verdicts:?}");
    let found = store.read(&[key(), other], soon()).await;
    assert!(begun.elapsed() <= Duration::from_millis(5200), "{:?}", begun.elapsed());
    assert!(found[0].is_err() && found[1].is_ok(), "{found:?}");
}

fn claim() -> IdempotencyRecord {
    let mut claim = completed("1");
    (claim.owner, claim.result, claim.status) = (Some(owner(2)), None, Status::InProgress);
    claim
}

/// The key was used with another payload, or by another application. What its result was makes no difference.
#[tokio::test(start_paused = true)]
async fn a_result_that_answers_nobody_is_not_read() {
    for is_foreign in [false, true] {
        let bucket = Bucket::new();
        let store = over(&bucket);
        let mut theirs = completed(long(5000));
        theirs.fingerprint = Some(Fingerprint::new("theirs"));
        theirs.application = is_foreign.then(|| "shipping".into());
        put(&store, &theirs).await;
        bucket.fault(Fault::Panics);
        let mut ours = claim();
        ours.fingerprint = Some(Fingerprint::new(if is_foreign { "theirs" } else { "ours" }));
        let write = Write::new(key(), Guard::Absent, Some(ours));
        theirs.result = None;
        match store.write(&[write], soon()).await.pop().unwrap() {
            Verdict::Found(Some(found)) => assert_eq!(found, theirs),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_32_results_are_put_at_once() {
    let bucket = Bucket::new();
    bucket.fault(Fault::Slow);
    let store = over(&bucket);
    let writes: Vec<_> = (0..50)
        .map(|n| {
            let key = Key::from_text(format!("k{n}"));
            Write::new(key, Guard::Absent, Some(completed(long(5000))))
        })
        .collect();
    let verdicts = store.write(&writes, soon()).await;
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Written)));
    assert_eq!(bucket.most.load(Ordering::SeqCst), 32);
    assert_eq!(bucket.kept.len(), 50);
}
