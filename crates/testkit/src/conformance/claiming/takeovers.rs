//! Takeovers: claims of a key whose lease or record has expired.

use lambda_idempotency_core::{
    admission::Admission,
    record::{Fingerprint, IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store},
};

use crate::conformance::{
    kit::{Slot, completed, in_progress, now, secs, token, whole_provenance},
    protocol::{attempt, claim, complete, hold, settle},
};

/// A takeover replaces the whole record. If a field were left over, a new claim would answer with
/// an old result, or be compared with an old fingerprint.
pub async fn takeover_replaces_every_field(store: &dyn Store) {
    let mut old = IdempotencyRecord::new(Status::PermanentlyFailed, now().minus(secs(5)));
    old.owner = Some(token());
    old.last_owner = Some(token());
    old.failed_attempts = 3;
    old.lost_attempts = 4;
    old.consecutive_losses = 4;
    old.fence = 5;
    old.lease_until = Some(now().minus(secs(60)));
    old.fingerprint = Some(Fingerprint::new("old-fingerprint"));
    old.result = Some("\"old\"".into());
    old.error_type = Some("OldError".into());
    old.provenance = Some(whole_provenance());
    old.steps = Some("{\"charge\":1}".into());
    old.outbox = Some("[{\"body\":\"paid\"}]".into());
    old.payload = Some("{\"orderId\":\"o-1\"}".into());
    let slot = Slot::with(store, &old).await;

    let bare = IdempotencyRecord::new(Status::InProgress, now().plus(secs(3600)));
    let why = "a write replaces the record: no field of the old one is left";
    slot.accepts(Guard::Unchanged(RecordVersion::of(&old)), Some(&bare), why).await;
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
        assert_eq!(answer, Admission::Busy { until }, "the lease holds at its last instant");
    }
    let settled_at = now();
    settle(&slot, &held, &complete("1"), settled_at).await;
    let last = settled_at.plus(held.claim.retention);
    for at in [last, last.plus(held.claim.clock_skew)] {
        let answer = attempt(&slot, &claim(token(), at), at).await;
        assert_eq!(answer, Admission::Replay(Some("1".into())), "the completion has not expired");
    }
}

/// A record that is gone when its takeover arrives (it was deleted, or expired by TTL) is claimed
/// as if it had never existed.
pub async fn what_is_gone_at_its_takeover_is_claimed_anew(store: &dyn Store) {
    let mut lapsed = in_progress(token());
    lapsed.lease_until = Some(now().minus(secs(60)));
    let slot = Slot::with(store, &lapsed).await;
    slot.accepts(
        Guard::Unchanged(RecordVersion::of(&lapsed)),
        None,
        "a reader of the record can delete it",
    )
    .await;
    let why = "the takeover of a deleted record finds no record";
    slot.refuses(
        Guard::Unchanged(RecordVersion::of(&lapsed)),
        Some(&in_progress(token())),
        None,
        why,
    )
    .await;
    let held = hold(&slot, &claim(token(), now()), now()).await;
    assert_eq!(held.lost_attempts(), 0, "the counts of the deleted record are gone");
}

/// A completed record that expired is claimed anew, and none of its fields are kept.
pub async fn expired_record_is_claimed_anew(store: &dyn Store) {
    let mut old = completed(token(), "\"old\"");
    old.failed_attempts = 2;
    let slot = Slot::with(store, &old).await;
    let later = old.expires_at.plus(secs(60));
    let held = hold(&slot, &claim(token(), later), later).await;
    slot.holds(Some(&held.record), "only the new claim is stored").await;
    assert_eq!(
        (held.failed_attempts(), held.lost_attempts()),
        (0, 0),
        "the counts of an expired record are not kept"
    );
}

/// A record in progress without a lease (from another library that did not know its deadline) is
/// found unchanged, and can be taken over with a guard that names the missing lease.
pub async fn record_without_a_lease_is_locked_until_it_expires(store: &dyn Store) {
    let foreign = IdempotencyRecord::new(Status::InProgress, now().plus(secs(600)));
    let slot = Slot::with(store, &foreign).await;
    let early = attempt(&slot, &claim(token(), now()), now()).await;
    let until = foreign.expires_at.plus(secs(1));
    assert_eq!(early, Admission::Busy { until }, "a claim without a lease holds until it expires");
    let late = until.plus(secs(1));
    let held = hold(&slot, &claim(token(), late), late).await;
    assert_eq!(held.lost_attempts(), 1, "one lost attempt");
}
