//! What happens while results that are kept elsewhere cannot be reached.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{Clock as _, SystemClock},
    key::Key,
    outbox::{MemorySender, Relay},
    record::{Fingerprint, Status},
    store::{Guard, Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_results::{EncryptionKey, LocalKeys};

use crate::bucket::{Bucket, DOWN, Fault, over};
use crate::support::{claim, completed, encrypted, get, key, keys, long, moved, owner, put, soon};

/// I13: half of the time is left for the completion without its result.
#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_put_is_refused_in_half_of_the_time() {
    for fault in DOWN {
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
    for fault in DOWN {
        let bucket = Bucket::new();
        let store = over(&bucket);
        put(&store, &completed(long(5000))).await;
        bucket.fault(fault);
        let error = get(&store).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::ResultUnavailable);
        let Verdict::Unknown(error) = put(&store, &claim()).await else { panic!("it was claimed") };
        assert_eq!(error.kind(), StoreErrorKind::ResultUnavailable);
        assert!(!error.may_have_applied());
    }
}

/// Its answer was lost, and the worker asks again.
#[tokio::test(start_paused = true)]
async fn while_the_result_store_is_down_a_worker_recognises_its_own_completion() {
    for fault in DOWN {
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
    store.store().insert(other.clone(), claim());
    let renews = |key| Write::new(key, Guard::OwnedBy(owner(2)), Some(claim()));
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
    let store = over(&bucket).encrypt_with(keys(1));
    let mut expired = completed(long(5000));
    expired.expires_at = SystemClock.now();
    put(&store, &expired).await;
    assert_eq!(get(&store).await.unwrap(), Some(expired.clone()));
    expired.result = None;
    for fault in DOWN {
        bucket.fault(fault);
        assert_eq!(get(&store).await.unwrap(), Some(expired.clone()), "{fault:?}");
    }
    bucket.fault(Fault::None);
    let without_key = LocalKeys::new(EncryptionKey::new("k2", &[2; 32]).unwrap());
    let taken_away = moved(&store, over(&bucket).decrypt_with(without_key)).await;
    assert_eq!(get(&taken_away).await.unwrap(), Some(expired.clone()));
    match put(&taken_away, &claim()).await {
        Verdict::Found(Some(found)) => assert_eq!(found, expired),
        other => panic!("{other:?}"),
    }
}

/// Only a settled record answers with its result. Another program may leave one in a record that it gives up.
#[tokio::test]
async fn a_record_in_progress_is_there_although_its_result_cannot_be_read() {
    let store = encrypted();
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
        theirs.result = None;
        match put(&store, &ours).await {
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

#[tokio::test(start_paused = true)]
async fn a_relay_reads_no_results_to_send_messages_and_leaves_them_as_they_are() {
    for fault in DOWN {
        let bucket = Bucket::new();
        let store = Arc::new(over(&bucket));
        let mut unsent = completed(long(5000));
        unsent.outbox = Some(r#"[{"to":"parcels","body":"1"}]"#.into());
        put(&*store, &unsent).await;
        bucket.fault(fault);
        let begun = tokio::time::Instant::now();
        let sender = Arc::<MemorySender>::default();
        let relay = Relay::new(Arc::clone(&store), Arc::clone(&sender));
        let relayed = relay.run(None, soon()).await.unwrap();
        assert_eq!((relayed.sent, relayed.swept.unreadable, sender.sent().len()), (1, 0, 1));
        assert!(begun.elapsed().is_zero(), "it waited for {:?}", begun.elapsed());
        bucket.fault(Fault::None);
        unsent.outbox = None;
        assert_eq!(get(&*store).await.unwrap(), Some(unsent));
    }
}
