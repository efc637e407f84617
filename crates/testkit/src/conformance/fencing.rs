//! A worker that lost its key cannot change the record.

use lambda_idempotency_core::{
    admission::{Finding, Freed, Held, Settled, Settlement, admit, free},
    store::{Guard, Store},
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

/// A settlement that comes too late changes nothing, and learns that a successor has the key: a third worker would run at
/// the same time if it were released, deleted or renewed.
pub async fn late_settlements_change_nothing(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    let permanent = Settlement::FailPermanently { result: None, error_type: "Late".into() };
    let renew = Settlement::Renew { lease_until: now().plus(secs(900)) };
    let (undo, decline, stop) = (Settlement::Undo, Settlement::Decline, Settlement::LeaveStanding);
    for late in [complete("\"late\""), permanent, release(), undo, decline, stop, renew] {
        let settled = settle(&slot, &first, &late, now()).await;
        assert!(
            matches!(settled, Settled::Overtaken(Finding::Held { .. })),
            "{late:?} learns that a successor has the key; got {settled:?}"
        );
        slot.holds(Some(&second.record), "the successor's record is untouched").await;
    }
    assert_eq!(settle(&slot, &first, &Settlement::Forget, now()).await, Settled::Done);
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

/// A takeover that was decided before the owner completed its key (late, but not too late) finds
/// the completion: the work must not run again because a worker read too early.
pub async fn stale_takeover_cannot_reopen_a_completed_key(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let early = now();
    let held = hold(&slot, &claim(token(), early), early).await;
    let late = held.claim.lease_until.plus(secs(5));
    let me = claim(token(), late);
    assert_eq!(admit(&me, Some(&held.record), late), Finding::Free, "the lease has expired");
    let (guard, mine) = me.over(Some(&held.record), late);
    assert_eq!(settle(&slot, &held, &complete("1"), late).await, Settled::Done);
    let done = slot.read().await;
    let why = "the record that the takeover read was replaced";
    slot.refuses(guard, Some(&mine.record), done.as_ref(), why).await;
    let answer = admit(&me, done.as_ref(), late);
    assert_eq!(answer, Finding::Completed(Some("1".into())), "the completion is the answer");
}

/// The successor settles as if it were the first owner. A settlement that comes after that is answered with its result.
pub async fn successor_settles_undisturbed(store: &dyn Store) {
    let (slot, first, second) = overtaken(store).await;
    settle(&slot, &first, &complete("\"first\""), now()).await;
    let settled = settle(&slot, &second, &complete("\"second\""), now()).await;
    assert_eq!(settled, Settled::Done, "the owner completes");
    let result = Some("\"second\"".into());
    let later = attempt(&slot, &claim(token(), now()), now()).await;
    assert_eq!(later, Err(Finding::Completed(result.clone())), "its result is the answer");
    let permanent = Settlement::FailPermanently { result: None, error_type: "Late".into() };
    for late in [complete("\"first\""), permanent, release(), Settlement::Undo, Settlement::Decline]
    {
        let settled = settle(&slot, &first, &late, now()).await;
        let expected = Settled::Overtaken(Finding::Completed(result.clone()));
        assert_eq!(settled, expected, "a late settlement gets the successor's result");
    }
}

/// A completion and a permanent failure are final for their own owner too: a release, an undo or a renewal that arrives
/// afterwards must not make the work run again.
pub async fn settled_is_final_for_its_own_owner(store: &dyn Store) {
    let fails = |text: &str| Settlement::FailPermanently {
        result: Some("{}".into()),
        error_type: text.into(),
    };
    let (result, error_type) = (Some("{}".into()), Some("Declined".into()));
    let failed = Finding::Failed { result, error_type, failed_attempts: 1 };
    for (first, answer, other) in [
        (complete("1"), Finding::Completed(Some("1".into())), fails("Late")),
        (fails("Declined"), failed, complete("1")),
    ] {
        let slot = Slot::fresh(store);
        let held = hold(&slot, &claim(token(), now()), now()).await;
        assert_eq!(settle(&slot, &held, &first, now()).await, Settled::Done);
        let done = slot.read().await;
        let renew = Settlement::Renew { lease_until: now().plus(secs(900)) };
        for late in [release(), Settlement::Undo, renew, other] {
            let settled = settle(&slot, &held, &late, now()).await;
            let expected = Settled::Overtaken(answer.clone());
            assert_eq!(settled, expected, "{late:?} after {first:?} is refused");
            slot.holds(done.as_ref(), "a settled record is final").await;
        }
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
    let me = claim(token(), now());
    let Ok(Some((guard, Freed::Completed))) = free(&me, found.as_ref(), now()) else {
        panic!("a completed key can be freed: {found:?}")
    };
    slot.accepts(guard.clone(), None, "the record that was read is deleted").await;
    let second = hold(&slot, &claim(token(), now()), now()).await;
    slot.refuses(guard.clone(), None, Some(&second.record), "a worker has claimed the key").await;
    assert_eq!(settle(&slot, &second, &complete("\"second\""), now()).await, Settled::Done);
    let there = slot.read().await;
    slot.refuses(guard, None, there.as_ref(), "the work was done again").await;
}
