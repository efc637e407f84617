//! A worker that lost its key cannot change the record.

use lambda_idempotency_core::{
    admission::{Admission, Freed, Freeing, Held, Overtaken, Settled, Settlement, admit, free},
    store::{Guard, RecordVersion, Store},
};

use super::{
    kit::{Slot, completed, in_progress, now, secs, token},
    protocol::{attempt, claim, complete, hold, release, settle},
};

/// A key whose first owner was overtaken: the slot, the first and the second.
async fn overtaken(store: &dyn Store) -> (Slot<'_>, Held, Held) {
    let slot = Slot::fresh(store);
    let early = now();
    let first = hold(&slot, &claim(token(), early), early).await;
    let late = first.claim.lease_until.plus(secs(5));
    let second = hold(&slot, &claim(token(), late), late).await;
    (slot, first, second)
}

/// Each owner of a key has a higher fence than the one before, so that a downstream system that
/// keeps the highest fence can refuse late writes; also after a release, and if the clock steps
/// back.
pub async fn each_owner_has_a_higher_fence(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    assert!(second.record.fence > first.record.fence, "the successor's fence is higher");
    assert_eq!(settle(&slot, &second, &release(), now()).await, Settled::Done);
    let before = now().minus(secs(3600));
    let third = hold(&slot, &claim(token(), before), before).await;
    assert!(third.record.fence > second.record.fence, "higher with a clock an hour behind, too");
    slot.holds(Some(&third.record), "the fence is stored").await;
}

/// A completion that comes too late does not overwrite the record of the successor, which still runs.
pub async fn late_completion_cannot_overwrite_the_successor(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    let settled = settle(&slot, &first, &complete("\"late\""), now()).await;
    assert!(
        matches!(settled, Settled::Overtaken(Overtaken::InProgress { .. })),
        "a late completion learns that a successor has the key; got {settled:?}"
    );
    slot.holds(Some(&second.record), "the successor's record is untouched").await;
}

/// A failure that is reported too late does not release the successor's key, or a third worker
/// would run at the same time.
pub async fn late_failure_cannot_release_the_successor(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    let settled = settle(&slot, &first, &release(), now()).await;
    assert!(
        matches!(settled, Settled::Overtaken(Overtaken::InProgress { .. })),
        "a late failure learns that a successor has the key; got {settled:?}"
    );
    slot.holds(Some(&second.record), "the successor's record is untouched").await;
}

/// A delete that comes too late does not remove the successor's record.
pub async fn late_undo_cannot_delete_the_successor(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    settle(&slot, &first, &Settlement::Undo, now()).await;
    slot.holds(Some(&second.record), "the successor's record is untouched").await;
}

/// A claim of a mutex that is forgotten leaves nothing, not even counts of attempts: the next claim finds a
/// free key.
pub async fn forgotten_claim_leaves_nothing(store: &dyn Store) {
    let (slot, _, second) = overtaken(store).await;
    assert_eq!(second.lost_attempts(), 1, "the first attempt was lost");
    assert_eq!(settle(&slot, &second, &Settlement::Forget, now()).await, Settled::Done);
    slot.holds(None, "a claim that is forgotten leaves nothing").await;
    let third = hold(&slot, &claim(token(), now()), now()).await;
    assert_eq!(third.lost_attempts(), 0, "the next claim is the first of its key");
}

/// A claim of a mutex that is forgotten too late does not free the successor's key, or a third worker
/// would run at the same time.
pub async fn late_forgetting_cannot_free_the_successors_key(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    assert_eq!(settle(&slot, &first, &Settlement::Forget, now()).await, Settled::Done);
    slot.holds(Some(&second.record), "the successor's record is untouched").await;
}

/// A renewal that comes too late does not give the key back to its former owner.
pub async fn late_renewal_cannot_take_the_key_back(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    let renew = Settlement::Renew { lease_until: now().plus(secs(900)) };
    let settled = settle(&slot, &first, &renew, now()).await;
    assert!(
        matches!(settled, Settled::Overtaken(Overtaken::InProgress { .. })),
        "a late renewal learns that the key is lost; got {settled:?}"
    );
    slot.holds(Some(&second.record), "the successor's record is untouched").await;
}

/// A takeover that was decided before the owner completed its key (late, but not too late) finds
/// the completion: the work must not run again because a worker read too early.
pub async fn stale_takeover_cannot_reopen_a_completed_key(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let early = now();
    let held = hold(&slot, &claim(token(), early), early).await;
    let late = held.claim.lease_until.plus(secs(5));
    let me = claim(token(), late);
    let Admission::Try { guard, held: mine } = admit(&me, Some(&held.record), late) else {
        panic!("the lease has expired")
    };
    assert_eq!(settle(&slot, &held, &complete("1"), late).await, Settled::Done);
    let done = slot.read().await;
    let why = "the record that the takeover read was replaced";
    slot.refuses(guard, Some(&mine.record), done.as_ref(), why).await;
    let answer = admit(&me, done.as_ref(), late);
    assert_eq!(answer, Admission::Replay(Some("1".into())), "the completion is the answer");
}

/// A permanent failure, reported too late, does not replace the successor's
/// completion, and is answered with it.
pub async fn late_failure_is_answered_with_the_successors_completion(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    settle(&slot, &second, &complete("\"second\""), now()).await;
    let permanent = Settlement::FailPermanently { result: None, error_type: "Late".into() };
    for late in [complete("\"first\""), permanent, release(), Settlement::Undo, Settlement::Decline]
    {
        assert_eq!(
            settle(&slot, &first, &late, now()).await,
            Settled::Overtaken(Overtaken::Completed(Some("\"second\"".into()))),
            "a late settlement gets the successor's result"
        );
    }
}

/// The successor settles as if it were the first owner.
pub async fn successor_settles_undisturbed(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    settle(&slot, &first, &complete("\"first\""), now()).await;
    assert_eq!(
        settle(&slot, &second, &complete("\"second\""), now()).await,
        Settled::Done,
        "the owner completes"
    );
    let later = attempt(&slot, &claim(token(), now()), now()).await;
    assert_eq!(later, Admission::Replay(Some("\"second\"".into())), "its result is the answer");
}

/// A duplicate that was refused holds nothing, and its cleanup removes nothing.
pub async fn rejected_duplicate_does_not_remove_the_owners_lock(store: &dyn Store) {
    let owners = in_progress(token());
    let slot = Slot::with(store, &owners).await;
    let duplicate = token();
    let refused = in_progress(duplicate);
    slot.refuses(Guard::Absent, Some(&refused), Some(&owners), "the key is held").await;
    let why = "a duplicate can delete only a record with its own token";
    slot.refuses(Guard::OwnedBy(duplicate), None, Some(&owners), why).await;
    let why = "a duplicate can delete only its own record";
    slot.refuses(Guard::Unchanged(RecordVersion::of(&refused)), None, Some(&owners), why).await;
}

/// A completion is final for its own owner too: a release, an undo or a renewal that arrives after
/// the completion must not make the work run again.
pub async fn completed_is_final_for_its_own_owner(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let held = hold(&slot, &claim(token(), now()), now()).await;
    assert_eq!(settle(&slot, &held, &complete("1"), now()).await, Settled::Done);
    let done = slot.read().await;
    let renew = Settlement::Renew { lease_until: now().plus(secs(900)) };
    let permanent = Settlement::FailPermanently { result: None, error_type: "Late".into() };
    for late in [release(), Settlement::Undo, renew, permanent] {
        assert_eq!(
            settle(&slot, &held, &late, now()).await,
            Settled::Overtaken(Overtaken::Completed(Some("1".into()))),
            "{late:?} after the completion is refused"
        );
        slot.holds(done.as_ref(), "completed is final").await;
    }
}

/// A permanent failure is as final as a completion.
pub async fn permanent_failure_is_final_for_its_own_owner(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let held = hold(&slot, &claim(token(), now()), now()).await;
    let permanent =
        Settlement::FailPermanently { result: Some("{}".into()), error_type: "Declined".into() };
    assert_eq!(settle(&slot, &held, &permanent, now()).await, Settled::Done);
    let failed = slot.read().await;
    for late in [complete("1"), release(), Settlement::Undo] {
        let settled = settle(&slot, &held, &late, now()).await;
        let error_type = Some("Declined".into());
        assert_eq!(
            settled,
            Settled::Overtaken(Overtaken::PermanentlyFailed { error_type }),
            "{late:?} after the permanent failure is refused"
        );
        slot.holds(failed.as_ref(), "a permanent failure is final").await;
    }
}

/// A renewal names the lease it extends, so that a late one cannot shorten a newer one.
pub async fn renewal_is_guarded_by_its_lease(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let held = hold(&slot, &claim(token(), now()), now()).await;
    let short = Settlement::Renew { lease_until: now().plus(secs(120)) };
    let long = Settlement::Renew { lease_until: now().plus(secs(240)) };
    assert_eq!(settle(&slot, &held, &long, now()).await, Settled::Done, "the lease is extended");
    let renewed = slot.read().await.expect("the renewed record is stored");
    let (guard, record) = held.write(&short, now());
    let why = "a renewal that was overtaken by a newer one does not shorten its lease";
    slot.refuses(guard, record.as_ref(), Some(&renewed), why).await;
    let held = Held { record: renewed, ..held };
    assert_eq!(
        settle(&slot, &held, &complete("1"), now()).await,
        Settled::Done,
        "the worker that renewed still owns the key"
    );
}

/// Two operations at once on one store settle their own records (a nested or concurrent call must
/// not complete the other's key).
pub async fn two_keys_at_once_are_settled_apart(store: &dyn Store) {
    let (outer, inner) = (Slot::fresh(store), Slot::fresh(store));
    let held_outer = hold(&outer, &claim(token(), now()), now()).await;
    let held_inner = hold(&inner, &claim(token(), now()), now()).await;
    settle(&inner, &held_inner, &complete("\"inner\""), now()).await;
    outer.holds(Some(&held_outer.record), "the outer key is still in progress").await;
    settle(&outer, &held_outer, &complete("\"outer\""), now()).await;
    for (slot, result) in [(&outer, "\"outer\""), (&inner, "\"inner\"")] {
        let answer = attempt(slot, &claim(token(), now()), now()).await;
        assert_eq!(answer, Admission::Replay(Some(result.into())), "each key has its own result");
    }
}

/// A token owns only the key that was claimed with it.
pub async fn token_of_one_key_opens_no_other(store: &dyn Store) {
    let (mine, theirs) = (token(), token());
    Slot::with(store, &in_progress(mine)).await;
    let record = in_progress(theirs);
    let slot = Slot::with(store, &record).await;
    let why = "another token owns this key";
    slot.refuses(Guard::OwnedBy(mine), Some(&completed(mine, "1")), Some(&record), why).await;
}

/// A key that is freed is new work, and the same freeing, applied late, does not delete what has come since.
pub async fn late_freeing_cannot_delete_the_successors_completion(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let first = hold(&slot, &claim(token(), now()), now()).await;
    assert_eq!(settle(&slot, &first, &complete("\"first\""), now()).await, Settled::Done);
    let found = slot.read().await;
    let Freeing::Delete { guard, was: Freed::Completed } = free(found.as_ref(), secs(1), now())
    else {
        panic!("a completed key can be freed: {found:?}")
    };
    slot.accepts(guard.clone(), None, "the record that was read is deleted").await;
    let second = hold(&slot, &claim(token(), now()), now()).await;
    slot.refuses(guard.clone(), None, Some(&second.record), "a worker has claimed the key").await;
    assert_eq!(settle(&slot, &second, &complete("\"second\""), now()).await, Settled::Done);
    let there = slot.read().await;
    slot.refuses(guard, None, there.as_ref(), "the work was done again").await;
}
