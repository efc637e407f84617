//! Many writes at once: one succeeds, and the others find its record.

use futures_util::future::join_all;
use lambda_idempotency_core::{
    admission::{Finding, Settled, Settlement},
    key::Key,
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store, Verdict, Write},
};

use super::{
    kit::{
        Slot, describe, explain, found, in_progress, now, read_all, same, secs, token, write_all,
    },
    protocol::{attempt, claim, complete, hold, release, settle},
};

/// Of 50 concurrent claims of one key, one succeeds.
pub async fn fifty_claimants_have_one_winner(store: &dyn Store) {
    one_winner(&Slot::fresh(store), &Guard::Absent, 50).await;
}

/// Of 30 concurrent takeovers of one record, all with the same guard, one succeeds.
pub async fn takeovers_of_a_lapsed_record_have_one_winner(store: &dyn Store) {
    let mut lapsed = in_progress(token());
    lapsed.lease_until = Some(now().minus(secs(60)));
    let slot = Slot::with(store, &lapsed).await;
    one_winner(&slot, &Guard::Unchanged(RecordVersion::of(&lapsed)), 30).await;
}

/// Sends `count` concurrent writes under one guard: one is applied, and each other write finds its record.
async fn one_winner(slot: &Slot<'_>, guard: &Guard, count: usize) {
    let records: Vec<IdempotencyRecord> = (0..count).map(|_| in_progress(token())).collect();
    let verdicts =
        join_all(records.iter().map(|record| slot.write(guard.clone(), Some(record)))).await;
    let winners: Vec<_> = verdicts
        .iter()
        .zip(&records)
        .filter(|(verdict, _)| matches!(verdict, Verdict::Written))
        .map(|(_, record)| record)
        .collect();
    let [winner] = winners[..] else {
        panic!("of {count} concurrent writes one is applied, not {}", winners.len())
    };
    for verdict in verdicts {
        if !matches!(verdict, Verdict::Written) {
            found(verdict, Some(winner), "a refused write finds the winner's record");
        }
    }
    slot.holds(Some(winner), "the winner's record is stored").await;
}

/// With the whole protocol: of 24 concurrent claims of one key, one is granted and the others are busy.
pub async fn claims_through_the_protocol_have_one_winner(store: &dyn Store) {
    let mut lapsed = in_progress(token());
    lapsed.lease_until = Some(now().minus(secs(60)));
    for slot in [Slot::fresh(store), Slot::with(store, &lapsed).await] {
        let now = now();
        let claims: Vec<_> = (0..24).map(|_| claim(token(), now)).collect();
        let answers = join_all(claims.iter().map(|claim| attempt(&slot, claim, now))).await;
        let won = answers.iter().filter(|answer| answer.is_ok()).count();
        let busy = answers.iter().filter(|a| matches!(a, Err(Finding::Held { .. }))).count();
        assert_eq!((won, busy), (1, 23), "one claim is granted, the others are busy: {answers:?}");
    }
}

/// An owner settles, or renews, while others that have read its record take over. Either it has its way and they find its
/// record, or one of them takes over and the owner is refused, but not both.
pub async fn an_owner_against_takeovers_has_one_winner(store: &dyn Store) {
    for round in 0..16 {
        let slot = Slot::fresh(store);
        let early = now();
        let held = hold(&slot, &claim(token(), early), early).await;
        let late = held.claim.lease_until.plus(secs(5));
        let settlement = match round % 2 {
            0 => complete("1"),
            _ => Settlement::Renew { lease_until: late.plus(secs(60)) },
        };
        let (guard, record) = held.write(&settlement, late);
        let mut writes = vec![slot.asks(guard, record.as_ref())];
        for _ in 0..7 {
            let next = in_progress(token());
            writes.push(slot.asks(Guard::Unchanged(RecordVersion::of(&held.record)), Some(&next)));
        }
        // The owner's write is neither the first nor the last.
        writes.swap(0, 3);
        one_is_written(&slot, &writes).await;
    }
}

/// Sends concurrent writes of one key: one is applied, and its record is stored.
async fn one_is_written(slot: &Slot<'_>, writes: &[Write]) {
    let calls = writes.iter().map(|write| write_all(slot.store, std::slice::from_ref(write)));
    let verdicts: Vec<_> = join_all(calls).await.into_iter().flatten().collect();
    let written: Vec<_> = verdicts
        .iter()
        .zip(writes)
        .filter(|(verdict, _)| matches!(verdict, Verdict::Written))
        .map(|(_, write)| write.record.as_ref())
        .collect();
    assert_eq!(written.len(), 1, "the write of the owner or of one successor is applied");
    slot.holds(written[0], "the applied write's record is stored").await;
}

/// Batches that overlap, in different orders: each key has one winner, each verdict is true, and no
/// two batches block each other.
pub async fn overlapping_batches_have_one_winner_a_key(store: &dyn Store) {
    let keys: Vec<Key> = Slot::several(store, 40).into_iter().map(|slot| slot.key).collect();
    let batches: Vec<Vec<Write>> = (0..8)
        .map(|batch| {
            let mut writes: Vec<_> = keys
                .iter()
                .cycle()
                .skip(batch * 5)
                .take(30)
                .map(|key| Write::new(key.clone(), Guard::Absent, Some(in_progress(token()))))
                .collect();
            if batch % 2 == 1 {
                writes.reverse();
            }
            writes
        })
        .collect();
    let verdicts = join_all(batches.iter().map(|writes| write_all(store, writes))).await;
    let there = read_all(store, &keys).await;
    for (key, there) in keys.iter().zip(&there) {
        let asked = batches.iter().flatten().zip(verdicts.iter().flatten());
        let mut winners = 0;
        for (write, verdict) in asked.filter(|(write, _)| write.key == *key) {
            match verdict {
                Verdict::Written => {
                    winners += 1;
                    let why = "the record of the applied write is stored";
                    same(there.as_ref(), write.record.as_ref(), why);
                }
                Verdict::Found(found) => {
                    let why = "a refused write finds the winner's record";
                    same(found.as_ref(), there.as_ref(), why);
                }
                Verdict::EffectRefused(refused) => panic!("a claim has no effects: {refused}"),
                Verdict::Unknown(error) => panic!("a claim failed: {}", explain(error)),
            }
        }
        assert_eq!(winners, 1, "each key has one winner; stored: {}", describe(there.as_ref()));
    }
}

/// Twelve workers share a key whose handler always fails: each worker claims and releases it. Every
/// failed attempt is counted once; a store that loses an update loses a count.
pub async fn every_failure_under_contention_is_counted(store: &dyn Store) {
    const WORKERS: usize = 12;
    let slot = Slot::fresh(store);
    let slot = &slot;
    let worker = || async move {
        let now = now();
        for _ in 0..10_000 {
            let Ok(held) = attempt(slot, &claim(token(), now), now).await else {
                tokio::task::yield_now().await;
                continue;
            };
            assert_eq!(settle(slot, &held, &release(), now).await, Settled::Done);
            return held.failed_attempts();
        }
        panic!("after 10,000 claims the key is still busy, although its owners release it")
    };
    let mut counted = join_all((0..WORKERS).map(|_| worker())).await;
    counted.sort_unstable();
    assert!(
        counted.iter().copied().eq((0..).take(WORKERS)),
        "each owner gets the count of failed attempts before its own: {counted:?}"
    );
    let left = slot.read().await.map(|record| record.failed_attempts);
    assert_eq!(left, Some(12), "every failed attempt is counted");
}

/// Concurrent writes of different keys do not block each other.
pub async fn different_keys_at_once_all_win(store: &dyn Store) {
    let slots = Slot::several(store, 50);
    let record = in_progress(token());
    join_all(slots.iter().map(|slot| slot.given(&record))).await;
    join_all(slots.iter().map(|slot| slot.holds(Some(&record), "each key has its record"))).await;
}
