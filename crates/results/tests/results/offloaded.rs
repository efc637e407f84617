//! Results that are kept elsewhere: what is where, and what is not read.

use lambda_idempotency_core::{
    key::Key,
    memory::MemoryStore,
    record::Status,
    store::{Guard, Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_results::{ResultName, ResultStore, Results};

use crate::bucket::{Bucket, over};
use crate::support::{
    completed, get, key, keys, long, moved, owner, put, result, soon, stored, tamper,
};

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
    let store = over(&bucket).encrypt_with(keys(1));
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
    let store =
        over(&bucket).encrypt_with(keys(1)).compress_above(0).offload_above(0, bucket.clone());
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

/// A worker lost its lease, and stores a result although its successor has completed the key. And a completed record is
/// final also for the claim that completed it, and so is its result.
#[tokio::test]
async fn a_later_result_does_not_replace_that_of_a_completed_record() {
    for winner in [2, 1] {
        let bucket = Bucket::new();
        let store = over(&bucket);
        let mut winners = completed(long(5000));
        winners.owner = Some(owner(winner));
        put(&store, &winners).await;
        let late = Write::new(key(), Guard::OwnedBy(owner(1)), Some(completed(long(6000))));
        match store.write(&[late], soon()).await.pop().unwrap() {
            Verdict::Found(Some(found)) => assert_eq!(found, winners),
            other => panic!("{other:?}"),
        }
        assert_eq!(get(&store).await.unwrap(), Some(winners));
        assert_eq!(bucket.kept.len(), 2, "nothing refers to the result that came late");
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
    let other = moved(&store, Results::new(MemoryStore::new())).await;
    let error = get(&other).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(error.to_string().contains("add `offload_above`"), "{error}");
    let reads = Results::new(MemoryStore::new()).offload_above(usize::MAX, bucket.clone());
    let reads = moved(&store, reads).await;
    assert_eq!(result(&reads).await, Some(long(5000)));
    tamper(&reads, "1").await;
    assert_eq!(result(&reads).await.as_deref(), Some("1"));
}
