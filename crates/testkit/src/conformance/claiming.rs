//! Claims under `Absent` and takeovers, what a claim keeps from its predecessor, and similar keys.

use lambda_idempotency_core::{
    admission::{Finding, Settlement},
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store},
};

use super::{
    kit::{Slot, completed, fresh_key, in_progress, now, read_all, released, secs, token},
    protocol::{attempt, claim, complete, hold, settle},
};

/// `Absent` holds if there is no record, and fails on any other: the store does not decide which records may be taken over.
/// A store that treated an expired record as absent would decide by its own clock, and accept a claim without a guard on
/// the record that it replaces. The verdict has that record, complete and unchanged.
pub async fn absent_finds_any_record(store: &dyn Store) {
    let fresh = Slot::fresh(store);
    fresh.holds(None, "a fresh key has no record").await;
    let record = in_progress(token());
    fresh.accepts(Guard::Absent, Some(&record), "an absent key is claimed under `Absent`").await;
    let failed = |expires_at| IdempotencyRecord::new(Status::PermanentlyFailed, expires_at);
    let mut lapsed = in_progress(token());
    lapsed.lease_until = Some(now().minus(secs(30)));
    let mut expired = completed(token(), "1");
    expired.expires_at = now().minus(secs(10));
    let failed = failed(now().plus(secs(3600)));
    for record in [record, completed(token(), "1"), failed, released(token()), lapsed, expired] {
        let slot = Slot::with(store, &record).await;
        let why = "`Absent` fails on a record of any status, also if it has lapsed or expired";
        slot.refuses(Guard::Absent, Some(&in_progress(token())), Some(&record), why).await;
    }
}

/// The retention begins with the completion, not with the claim: an order that took an hour is
/// answered for as long as one that took a second.
pub async fn completion_restarts_the_retention(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let held = hold(&slot, &claim(token(), now()), now()).await;
    let later = now().plus(secs(1800));
    settle(&slot, &held, &complete("1"), later).await;
    let done = slot.read().await.expect("the completion is stored");
    assert!(
        done.expires_at >= later.plus(held.claim.retention),
        "the retention begins with the completion"
    );
}

/// The completion keeps the fingerprint, so that another payload under the key is detected for as
/// long as the key answers.
pub async fn fingerprint_outlives_the_completion(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let with = |hash: &str| {
        let mut claim = claim(token(), now());
        claim.fingerprint = Some(Fingerprint::new(hash));
        claim
    };
    let held = hold(&slot, &with("amount=1"), now()).await;
    settle(&slot, &held, &complete("1"), now()).await;
    let other = attempt(&slot, &with("amount=2"), now()).await;
    assert_eq!(other, Err(Finding::Mismatch), "the key was used with another payload");
    let same = attempt(&slot, &with("amount=1"), now()).await;
    assert_eq!(same, Err(Finding::Completed(Some("1".into()))), "the same payload is replayed");
}

/// A key belongs to the application that claimed it for as long as its record is valid: another
/// application neither gets its result nor takes it over.
pub async fn another_application_is_refused_and_changes_nothing(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let of = |name: &str| {
        let mut claim = claim(token(), now());
        claim.application = Some(name.into());
        claim
    };
    let foreign = Err(Finding::Foreign { application: "billing".into() });
    let held = hold(&slot, &of("billing"), now()).await;
    let other = attempt(&slot, &of("shipping"), now().plus(secs(120))).await;
    assert_eq!(other, foreign, "an expired claim of another application is not taken over");
    settle(&slot, &held, &complete("1"), now()).await;
    let done = slot.read().await;
    let other = attempt(&slot, &of("shipping"), now()).await;
    assert_eq!(other, foreign, "another application's completion is not replayed");
    slot.holds(done.as_ref(), "a refused claim changes nothing").await;
    let same = attempt(&slot, &of("billing"), now()).await;
    assert_eq!(same, Err(Finding::Completed(Some("1".into()))), "its own application is answered");
}

/// A permanent failure is the answer to every later delivery, with all its fields, until it
/// expires; then the key can be claimed anew.
pub async fn permanent_failure_is_the_answer_until_it_expires(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let held = hold(&slot, &claim(token(), now()), now()).await;
    let permanent =
        Settlement::FailPermanently { result: Some("{}".into()), error_type: "Declined".into() };
    settle(&slot, &held, &permanent, now()).await;
    let answer = attempt(&slot, &claim(token(), now()), now().plus(secs(300))).await;
    let error_type = Some("Declined".into());
    assert_eq!(
        answer,
        Err(Finding::Failed { result: Some("{}".into()), error_type, failed_attempts: 1 })
    );
    let later = now().plus(secs(7200));
    let anew = hold(&slot, &claim(token(), later), later).await;
    assert_eq!(
        (anew.failed_attempts(), anew.lost_attempts()),
        (0, 0),
        "the counts of an expired record are not kept"
    );
}

/// Keys that look alike are different keys. Two operations that shared a record would get each
/// other's results.
pub async fn similar_keys_do_not_meet(store: &dyn Store) {
    let base = fresh_key();
    let base = base.as_str();
    let texts = [
        base.to_owned(),
        format!("{base}#"),
        format!("{base} "),
        format!(" {base}"),
        base.to_uppercase(),
        format!("{base}/a"),
        format!("{base}/A"),
        format!("{base}*"),
        format!("{base}%"),
        format!("{base}_"),
        format!("{base}'"),
        format!("{base}\""),
        format!("{base}\\"),
        format!("{base}{{0}}"),
        format!("{base}\u{e9}"),
        format!("{base}e\u{301}"),
        format!("{base}\u{1f600}"),
        format!("{base}\u{df}"),
        format!("{base}ss"),
    ];
    let slots: Vec<_> = texts.iter().map(|text| Slot::named(store, text.as_str())).collect();
    let mut records = Vec::new();
    for slot in &slots {
        let record = in_progress(token());
        let why = format!("the key {:?} differs from all keys before it", slot.key);
        slot.accepts(Guard::Absent, Some(&record), &why).await;
        records.push(Some(record));
    }
    let keys: Vec<_> = slots.iter().map(|slot| slot.key.clone()).collect();
    assert_eq!(read_all(store, &keys).await, records, "each key has its own record");
}

/// Keys of 1,024 bytes, the longest that the library makes, are stored completely: they differ in
/// their last byte.
pub async fn long_keys_are_kept_whole(store: &dyn Store) {
    let stem = format!("{:x<1023}", fresh_key().as_str());
    for last in ["a", "b"] {
        let slot = Slot::named(store, format!("{stem}{last}"));
        assert_eq!(slot.key.as_str().len(), 1024);
        let why = "keys that differ in their last byte are different keys";
        slot.accepts(Guard::Absent, Some(&in_progress(token())), why).await;
    }
}

/// A read always sees the latest write: a claim that read an older state would decide on it.
pub async fn reads_see_the_latest_write(store: &dyn Store) {
    let me = token();
    let mut record = in_progress(me);
    let slot = Slot::with(store, &record).await;
    for round in 1..=20 {
        let before = RecordVersion::of(&record);
        record.lease_until = Some(Timestamp::from_millis(now().as_millis() + 60_000 + round));
        slot.accepts(Guard::Unchanged(before), Some(&record), "a read is strongly consistent")
            .await;
    }
}

/// A record of a lost attempt is taken over after its lease and the clock skew, and the next owner
/// gets the number of lost attempts.
pub async fn lapsed_record_is_taken_over(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let early = now();
    let first = hold(&slot, &claim(token(), early), early).await;
    let late = first.claim.lease_until.plus(secs(2));
    let second = hold(&slot, &claim(token(), late), late).await;
    slot.holds(Some(&second.record), "the new claim is stored").await;
    assert_eq!((second.failed_attempts(), second.lost_attempts()), (0, 1), "one lost attempt");
    let later = late.plus(secs(3600));
    let third = hold(&slot, &claim(token(), later), later).await;
    assert_eq!(
        (third.lost_attempts(), third.consecutive_losses()),
        (2, 2),
        "two lost attempts, one after the other"
    );
}

/// At the last instant of its lease a record is still its owner's, and at the last instant of its
/// retention it still answers; also for the clock skew after that. A store that rounds either of
/// them down frees the key too early.
pub async fn at_its_last_instant_it_still_counts(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let held = hold(&slot, &claim(token(), now()), now()).await;
    let until = held.claim.lease_until.plus(held.claim.clock_skew);
    for at in [held.claim.lease_until, until] {
        let answer = attempt(&slot, &claim(token(), at), at).await;
        assert_eq!(answer, Err(Finding::Held { until }), "the lease holds at its last instant");
    }
    let settled_at = now();
    settle(&slot, &held, &complete("1"), settled_at).await;
    let last = settled_at.plus(held.claim.retention);
    for at in [last, last.plus(held.claim.clock_skew)] {
        let answer = attempt(&slot, &claim(token(), at), at).await;
        assert_eq!(
            answer,
            Err(Finding::Completed(Some("1".into()))),
            "the completion has not expired"
        );
    }
}

/// A record in progress without a lease (from another library that did not know its deadline) is
/// found unchanged, and can be taken over with a guard that names the missing lease.
pub async fn record_without_a_lease_is_locked_until_it_expires(store: &dyn Store) {
    let foreign = IdempotencyRecord::new(Status::InProgress, now().plus(secs(600)));
    let slot = Slot::with(store, &foreign).await;
    let early = attempt(&slot, &claim(token(), now()), now()).await;
    let until = foreign.expires_at.plus(secs(1));
    assert_eq!(
        early,
        Err(Finding::Held { until }),
        "a claim without a lease holds until it expires"
    );
    let late = until.plus(secs(1));
    let held = hold(&slot, &claim(token(), late), late).await;
    assert_eq!(held.lost_attempts(), 1, "one lost attempt");
}
