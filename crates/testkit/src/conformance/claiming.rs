//! Claims under `Absent`, what a claim keeps from its predecessor, and similar keys.

mod takeovers;

use lambda_idempotency_core::{
    admission::{Admission, Settlement},
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store},
};

pub use self::takeovers::{
    at_its_last_instant_it_still_counts, expired_record_is_claimed_anew,
    lapsed_record_is_taken_over, record_without_a_lease_is_locked_until_it_expires,
    takeover_replaces_every_field, what_is_gone_at_its_takeover_is_claimed_anew,
};
use super::{
    kit::{
        Slot, completed, fresh_key, in_progress, now, read_all, released, secs, token,
        whole_provenance,
    },
    protocol::{attempt, claim, complete, hold, settle},
};

/// `Absent` holds if there is no record: the record is written, and a read finds it at once.
pub async fn absent_key_is_written_and_read_back(store: &dyn Store) {
    let slot = Slot::fresh(store);
    slot.holds(None, "a fresh key has no record").await;
    let record = in_progress(token());
    slot.accepts(Guard::Absent, Some(&record), "an absent key is claimed under `Absent`").await;
}

/// Of two claims the first is kept: the second finds it, complete and unchanged. This prevents a
/// duplicate from running.
pub async fn second_absent_write_finds_the_first(store: &dyn Store) {
    let first = in_progress(token());
    let slot = Slot::with(store, &first).await;
    let second = in_progress(token());
    let why = "`Absent` fails on any record, and the verdict has that record";
    slot.refuses(Guard::Absent, Some(&second), Some(&first), why).await;
}

/// `Absent` fails on a completed, a failed and a released record alike: the store does not decide
/// which records may be taken over.
pub async fn absent_finds_a_record_of_any_status(store: &dyn Store) {
    let mut failed = completed(token(), "{}");
    failed.status = Status::PermanentlyFailed;
    failed.result = None;
    failed.error_type = Some("Declined".into());
    for record in [completed(token(), "1"), failed, released(token())] {
        let slot = Slot::with(store, &record).await;
        let why = "`Absent` fails on a record whatever its status";
        slot.refuses(Guard::Absent, Some(&in_progress(token())), Some(&record), why).await;
    }
}

/// An expired record still exists. A store that treated it as absent would decide by its own clock,
/// and accept a claim without a guard on the record it replaces.
pub async fn expired_record_is_found_under_absent(store: &dyn Store) {
    let mut old = IdempotencyRecord::new(Status::Completed, now().minus(secs(10)));
    old.result = Some("1".into());
    let slot = Slot::with(store, &old).await;
    let why = "`Absent` fails on an expired record too";
    slot.refuses(Guard::Absent, Some(&in_progress(token())), Some(&old), why).await;
}

/// A record in progress whose lease has ended still exists, for the same reason.
pub async fn lapsed_record_is_found_under_absent(store: &dyn Store) {
    let mut old = in_progress(token());
    old.lease_until = Some(now().minus(secs(30)));
    let slot = Slot::with(store, &old).await;
    let why = "`Absent` fails on a record whose lease has expired too";
    slot.refuses(Guard::Absent, Some(&in_progress(token())), Some(&old), why).await;
}

/// A key that was deleted is absent again.
pub async fn deleted_key_is_absent_again(store: &dyn Store) {
    let me = token();
    let slot = Slot::with(store, &in_progress(me)).await;
    slot.accepts(Guard::OwnedBy(me), None, "an owner may delete its record").await;
    let why = "a deleted key has no record, so `Absent` holds";
    slot.accepts(Guard::Absent, Some(&in_progress(token())), why).await;
}

/// Settling replaces the whole record as well: a completion leaves no lease, a release no owner.
pub async fn settling_replaces_every_field(store: &dyn Store) {
    let me = token();
    let mut mine = in_progress(me);
    mine.failed_attempts = 2;
    mine.lost_attempts = 1;
    mine.consecutive_losses = 1;
    mine.fence = 5;
    mine.last_owner = Some(token());
    mine.fingerprint = Some(Fingerprint::new("f"));
    mine.error_type = Some("Declined".into());
    mine.provenance = Some(whole_provenance());
    mine.steps = Some("{\"charge\":1}".into());
    mine.payload = Some("{\"orderId\":\"o-1\"}".into());
    let slot = Slot::with(store, &mine).await;
    let bare = IdempotencyRecord::new(Status::Completed, now().plus(secs(3600)));
    let why = "a write under `OwnedBy` replaces the record: no field of the old one is left";
    slot.accepts(Guard::OwnedBy(me), Some(&bare), why).await;
}

/// One claim after another through the protocol: claimed, busy, completed, replayed.
pub async fn a_key_lives_through_the_protocol(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let now = now();
    let held = hold(&slot, &claim(token(), now), now).await;
    let duplicate = attempt(&slot, &claim(token(), now), now).await;
    assert!(
        matches!(duplicate, Admission::Busy { .. }),
        "while the first claim holds, a duplicate is busy; got {duplicate:?}"
    );
    settle(&slot, &held, &complete("{\"charged\":true}"), now).await;
    let later = attempt(&slot, &claim(token(), now), now.plus(secs(300))).await;
    assert_eq!(
        later,
        Admission::Replay(Some("{\"charged\":true}".into())),
        "a completed key answers with its result"
    );
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
    assert_eq!(other, Admission::Mismatch, "the key was used with another payload");
    let same = attempt(&slot, &with("amount=1"), now()).await;
    assert_eq!(same, Admission::Replay(Some("1".into())), "the same payload is replayed");
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
    let foreign = Admission::Foreign { application: "billing".into() };
    let held = hold(&slot, &of("billing"), now()).await;
    let other = attempt(&slot, &of("shipping"), now().plus(secs(120))).await;
    assert_eq!(other, foreign, "an expired claim of another application is not taken over");
    settle(&slot, &held, &complete("1"), now()).await;
    let done = slot.read().await;
    let other = attempt(&slot, &of("shipping"), now()).await;
    assert_eq!(other, foreign, "another application's completion is not replayed");
    slot.holds(done.as_ref(), "a refused claim changes nothing").await;
    let same = attempt(&slot, &of("billing"), now()).await;
    assert_eq!(same, Admission::Replay(Some("1".into())), "its own application is answered");
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
        Admission::PermanentlyFailed { result: Some("{}".into()), error_type, failed_attempts: 1 }
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
