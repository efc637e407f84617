//! A write whose response was lost is repeated, or arrives twice, and is recognised.

use lambda_idempotency_core::{
    admission::{Finding, Settled, Settlement, admit},
    clock::Timestamp,
    store::{Guard, RecordVersion, Store, Verdict},
};

use super::{
    kit::{Slot, completed, in_progress, now, secs, token, written},
    protocol::{attempt, claim, complete, hold, release, settle},
};

/// A claim or a takeover that is sent again finds its own record, so the worker has the key. A read shows the same.
pub async fn retried_claim_meets_its_own_token(store: &dyn Store) {
    let mut lapsed = in_progress(token());
    lapsed.lease_until = Some(now().minus(secs(60)));
    let takeover = Guard::Unchanged(RecordVersion::of(&lapsed));
    let slots = [Slot::fresh(store), Slot::with(store, &lapsed).await];
    for (slot, guard) in slots.into_iter().zip([Guard::Absent, takeover]) {
        let (now, me) = (now(), claim(token(), now()));
        let held = hold(&slot, &me, now).await;
        let why = "the claim is stored, so the same write in a new call finds it";
        slot.refuses(guard, Some(&held.record), Some(&held.record), why).await;
        let found = slot.read().await;
        assert_eq!(admit(&me, found.as_ref(), now), Finding::Mine, "its token says so");
    }
}

/// A renewal was applied but its response was lost. The next renewal is longer and names the old
/// lease, so its guard fails. The record is still its owner's, and the longer lease is written over
/// it. Treating this as a lost lease would stop a handler that no other worker has replaced.
pub async fn longer_renewal_after_a_lost_one_is_written(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let now = now();
    let held = hold(&slot, &claim(token(), now), now).await;
    let [lost, longer] =
        [120, 240].map(|length| Settlement::Renew { lease_until: now.plus(secs(length)) });
    let (guard, renewed) = held.write(&lost, now);
    slot.accepts(guard, renewed.as_ref(), "the first renewal is applied").await;
    let (guard, record) = held.write(&longer, now);
    let why = "the second renewal names a lease that was replaced";
    slot.refuses(guard, record.as_ref(), renewed.as_ref(), why).await;
    let Settled::Again { guard, record } = held.settled(&longer, renewed.as_ref(), now) else {
        panic!("the owner still has the key, so the longer lease is written again")
    };
    slot.accepts(guard, Some(&record), "the longer renewal extends the first one").await;
    assert_eq!(record.lease_until, Some(now.plus(secs(240))));
    let settled = settle(&slot, &held, &complete("1"), now).await;
    assert_eq!(settled, Settled::Done, "the owner still has the key");
}

/// A store that is called after the deadline may do nothing, but its verdicts have to be true: a
/// write reported as applied is stored, and a write reported as not applied is not.
pub async fn past_the_deadline_it_tells_the_truth(store: &dyn Store) {
    for count in [1, 3] {
        let slots = Slot::several(store, count);
        let record = in_progress(token());
        let writes: Vec<_> =
            slots.iter().map(|slot| slot.asks(Guard::Absent, Some(&record))).collect();
        let verdicts = store.write(&writes, Timestamp::from_millis(1)).await;
        assert_eq!(verdicts.len(), count, "a late call also gets one verdict for each write");
        for (slot, verdict) in slots.iter().zip(verdicts) {
            match verdict {
                Verdict::Written => slot.holds(Some(&record), "the verdict was Written").await,
                Verdict::Found(there) => panic!("no record was stored, but found {there:?}"),
                Verdict::EffectRefused(refused) => panic!("there are no effects: {refused}"),
                Verdict::Unknown(error) if error.may_have_applied() => {}
                Verdict::Unknown(_) => slot.holds(None, "the error was not in doubt").await,
            }
        }
    }
}

/// A settlement that is sent again is refused, and recognised: a completion and a permanent failure by their owner, a release
/// by its last owner, a renewal by its lease.
pub async fn retried_settlement_is_done(store: &dyn Store) {
    let permanent =
        Settlement::FailPermanently { result: Some("{}".into()), error_type: "Declined".into() };
    let renew = Settlement::Renew { lease_until: now().plus(secs(900)) };
    let stop = Settlement::LeaveStanding;
    for settlement in [complete("[1,2]"), permanent, release(), renew, stop] {
        let slot = Slot::fresh(store);
        let now = now();
        let held = hold(&slot, &claim(token(), now), now).await;
        let (guard, record) = held.write(&settlement, now);
        slot.accepts(guard.clone(), record.as_ref(), "the owner settles its key").await;
        let why = "its guard no longer holds: the same write in a new call finds its own record";
        slot.refuses(guard, record.as_ref(), record.as_ref(), why).await;
        let settled = held.settled(&settlement, slot.read().await.as_ref(), now);
        assert_eq!(settled, Settled::Done, "a worker recognises its own settlement");
    }
}

/// An undo of a key with earlier failures is recognised by its last owner, and the failures stay
/// counted.
pub async fn retried_undo_keeps_the_history(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let now = now();
    let first = hold(&slot, &claim(token(), now), now).await;
    settle(&slot, &first, &release(), now).await;
    let second = hold(&slot, &claim(token(), now), now).await;
    assert_eq!(
        (second.failed_attempts(), second.lost_attempts()),
        (1, 0),
        "the failure was counted"
    );
    for _ in 0..2 {
        let settled = settle(&slot, &second, &Settlement::Undo, now).await;
        assert_eq!(settled, Settled::Done, "an undo that is sent again is done");
    }
    let third = hold(&slot, &claim(token(), now), now).await;
    assert_eq!(
        (third.failed_attempts(), third.lost_attempts()),
        (1, 0),
        "the undo restores the counts before the second claim"
    );
}

/// A claim or a takeover that arrives a second time after its owner has settled finds the settled record.
pub async fn duplicate_of_a_claim_cannot_reopen_a_completed_key(store: &dyn Store) {
    let mut lapsed = in_progress(token());
    lapsed.lease_until = Some(now().minus(secs(60)));
    let takeover = Guard::Unchanged(RecordVersion::of(&lapsed));
    let slots = [Slot::fresh(store), Slot::with(store, &lapsed).await];
    for (slot, guard) in slots.into_iter().zip([Guard::Absent, takeover]) {
        let held = hold(&slot, &claim(token(), now()), now()).await;
        settle(&slot, &held, &complete("1"), now()).await;
        let done = slot.read().await;
        let why = "a duplicate of the claim finds the completion";
        slot.refuses(guard, Some(&held.record), done.as_ref(), why).await;
    }
}

/// A release that arrives a second time after the next owner claimed the key changes nothing.
pub async fn duplicate_of_a_release_cannot_free_the_next_owner(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let now = now();
    let first = hold(&slot, &claim(token(), now), now).await;
    let (guard, record) = first.write(&release(), now);
    slot.accepts(guard.clone(), record.as_ref(), "the first owner releases").await;
    let second = hold(&slot, &claim(token(), now), now).await;
    let why = "a duplicate of the release does not own the second owner's record";
    slot.refuses(guard, record.as_ref(), Some(&second.record), why).await;
}

/// A completion that finds no record (it was deleted, or expired by TTL) is written under `Absent`:
/// the work is done, and later deliveries must be answered with it.
pub async fn completion_that_finds_nothing_is_written_under_absent(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let held = hold(&slot, &claim(token(), now()), now()).await;
    let verdict = slot.write(Guard::Unchanged(RecordVersion::of(&held.record)), None).await;
    written(verdict, "a reader of the record can delete it");
    assert_eq!(settle(&slot, &held, &complete("7"), now()).await, Settled::Done);
    let answer = attempt(&slot, &claim(token(), now()), now()).await;
    assert_eq!(answer, Err(Finding::Completed(Some("7".into()))), "the completion is stored");
}

/// The same, but a successor completed the key before that write: the successor's completion is
/// kept.
pub async fn completion_that_finds_a_successors_is_answered_with_it(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let (now, mine) = (now(), complete("\"mine\""));
    let held = hold(&slot, &claim(token(), now), now).await;
    let verdict = slot.write(Guard::Unchanged(RecordVersion::of(&held.record)), None).await;
    written(verdict, "a reader of the record can delete it");
    let (guard, record) = held.write(&mine, now);
    slot.refuses(guard, record.as_ref(), None, "the owner's record is missing").await;
    let Settled::Again { guard, record } = held.settled(&mine, None, now) else {
        panic!("a completion that finds no record is written under `Absent`")
    };
    let theirs = completed(token(), "\"theirs\"");
    slot.given(&theirs).await;
    slot.refuses(guard, Some(&record), Some(&theirs), "the first completion is final").await;
    assert_eq!(
        held.settled(&mine, Some(&theirs), now),
        Settled::Overtaken(Finding::Completed(Some("\"theirs\"".into()))),
        "the successor's result is the answer"
    );
}
