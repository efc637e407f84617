//! Short leases that are renewed while handlers run.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::future::join;
use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    policy::Lease,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, StoreErrorKind, Write},
};
use lambda_idempotency_testkit::{clock::ManualClock, faults::Fault};

use crate::{
    quarantine::LABELS,
    support::{START, World, assert_took, key, labels, ok, rec, renews, slow, throttled},
};

const SECOND: Duration = Duration::from_secs(1);
const LENGTH: Duration = Duration::from_secs(6);

fn world() -> World {
    let mut world = World { timeout: Some(60 * SECOND), ..World::new() };
    world.policy.lease = Lease::Renewed { length: LENGTH };
    world
}

#[tokio::test]
async fn a_lease_is_short_and_renewed_while_the_handler_runs() {
    let world = world();
    let long = rec("a", |world: World, _| async move {
        for seconds in 1..20 {
            world.clock.sleep(SECOND).await;
            let lease = world.stored("a").await.unwrap().lease_until.unwrap();
            let now = START.plus(SECOND * seconds);
            assert!(lease > now && lease <= now.plus(LENGTH), "after {seconds} s");
        }
        Ok(())
    });
    assert_eq!(world.deliver(vec![long]).await, ["executed"]);
    assert_eq!(world.stored("a").await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn near_the_end_of_the_invocation_nothing_is_renewed() {
    let mut world = world();
    world.timeout = Some(5 * SECOND);
    assert_eq!(world.deliver(vec![slow("a", 4 * SECOND)]).await, ["executed"]);
    assert_eq!(world.store.write_calls(), 2, "the first lease reaches beyond the end");
}

#[tokio::test]
async fn no_lease_reaches_beyond_the_end_of_the_invocation() {
    let mut world = world();
    world.timeout = Some(20 * SECOND);
    assert_eq!(world.deliver(vec![slow("a", 60 * SECOND)]).await, ["timed_out"]);
    let record = world.stored("a").await.unwrap();
    assert_eq!(
        record.lease_until,
        Some(START.plus(21 * SECOND)),
        "the invocation deadline plus the lease grace"
    );
}

/// The record that another worker writes when it takes the key over.
fn taken_over(status: Status) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(status, START.plus(3600 * SECOND));
    record.owner = Some(Owner::from_bits(7));
    record.lease_until = Some(START.plus(40 * SECOND));
    record
}

#[tokio::test]
async fn a_fenced_handler_is_stopped_at_its_next_renewal() {
    for (status, outcome) in [(Status::InProgress, "fenced"), (Status::Completed, "superseded")] {
        let world = world();
        let overtaken = rec("a", move |world: World, _| async move {
            world.store.inner().insert(key("a"), taken_over(status));
            world.clock.sleep(30 * SECOND).await;
            Ok(())
        });
        let outcomes = world.deliver(vec![overtaken, slow("b", 9 * SECOND)]).await;
        assert_eq!(outcomes, [outcome, "executed"]);
        world.ledger.assert_never("a");
        assert!(world.clock.now() < START.plus(10 * SECOND));
        assert_eq!(world.stored("a").await, Some(taken_over(status)));
    }
}

#[tokio::test]
async fn a_handler_whose_lease_cannot_be_renewed_is_stopped_before_it_ends() {
    let world = world();
    let stopped = Arc::new(OnceLock::new());
    let noted = Arc::clone(&stopped);
    let cut_off = rec("a", |world: World, _| async move {
        let _stops = Stops(world.clock.clone(), noted);
        world.store.outage();
        world.clock.sleep(30 * SECOND).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![cut_off]).await, ["fenced"]);
    world.ledger.assert_never("a");
    let stopped = stopped.get().unwrap();
    assert!(*stopped <= START.plus(LENGTH + SECOND), "{stopped:?}");
}

/// Notes when a handler is dropped.
struct Stops(ManualClock, Arc<OnceLock<Timestamp>>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.1.get_or_init(|| self.0.now());
    }
}

/// Their process lived, so they are not quarantined.
#[tokio::test]
async fn records_that_were_stopped_for_want_of_a_renewal_are_no_suspects() {
    let world = world();
    let renewals = renews;
    let refused = Fault::refuse(StoreErrorKind::Unavailable);
    world.store.inject(refused.for_writes(renewals).always());
    let outcomes = world.deliver(LABELS.map(|label| slow(label, 15 * SECOND)).into()).await;
    assert_eq!(outcomes, ["fenced"; 10]);
    world.store.heal();
    world.clock.advance(40 * SECOND);
    let stored = world.stored("a").await.unwrap();
    assert!(stored.is_given_up());
    assert_eq!((stored.lost_attempts, stored.consecutive_losses), (1, 0));
    let begun = world.clock.now();
    let again = LABELS.map(|label| slow(label, 15 * SECOND).receives(2)).into();
    assert_eq!(world.deliver(again).await, ["executed"; 10]);
    assert_took(&world, begun, 15 * SECOND);
}

/// The outage has ended before the invocation.
#[tokio::test]
async fn a_stop_for_want_of_a_renewal_is_recorded_once_the_store_answers() {
    let world = world();
    let cut_off = rec("a", |world: World, _| async move {
        world.store.outage();
        world.clock.sleep(30 * SECOND).await;
        Ok(())
    });
    let heals = async {
        world.clock.sleep(10 * SECOND).await;
        assert!(!world.stored("a").await.unwrap().is_given_up());
        world.store.heal();
    };
    let (outcomes, ()) = world.clock.drive(join(world.invoke(vec![cut_off]), heals)).await;
    assert_eq!(labels(&outcomes), ["fenced"]);
    assert!(world.stored("a").await.unwrap().is_given_up());
    assert!(world.clock.now() < START.plus(12 * SECOND));
}

/// It lost its lease while nothing was written or answered, and another worker has completed its key.
#[tokio::test]
async fn a_stop_for_want_of_a_renewal_finds_the_other_workers_completion() {
    let world = world();
    let renewals = renews;
    let refused = Fault::refuse(StoreErrorKind::Unavailable);
    world.store.inject(refused.for_writes(renewals).always());
    let late = rec("a", |world: World, _| async move {
        world.store.inner().insert(key("a"), taken_over(Status::Completed));
        world.clock.sleep(30 * SECOND).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![late]).await, ["superseded"]);
    assert_eq!(world.stored("a").await, Some(taken_over(Status::Completed)));
}

#[tokio::test]
async fn claims_that_wait_for_their_turn_are_renewed_too() {
    let mut world = world();
    world.policy.concurrency = 1;
    let records = vec![slow("a", 15 * SECOND), slow("b", 15 * SECOND), ok("c")];
    assert_eq!(world.deliver(records).await, ["executed"; 3]);
}

/// A lease is renewed while a handler waits for its first poll: what counts then is the renewed lease.
#[tokio::test]
async fn a_handler_that_waits_behind_blocking_ones_begins_within_its_renewed_lease() {
    let mut world = World { timeout: Some(600 * SECOND), ..World::yielding() };
    world.policy.lease = Lease::Renewed { length: LENGTH };
    let blocking = |label| {
        rec(label, |world: World, _| async move {
            world.clock.advance(SECOND);
            Ok(())
        })
    };
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    assert_eq!(world.deliver(names.map(blocking).into()).await, ["executed"; 12]);
    world.ledger.assert_each_once(names);
}

#[tokio::test]
async fn many_leases_are_renewed_in_one_call() {
    let world = world();
    let labels = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let outcomes = world.deliver(labels.map(|label| slow(label, 5 * SECOND)).into()).await;
    assert_eq!(outcomes, ["executed"; 8]);
    assert!(world.store.write_calls() <= 5, "{} calls", world.store.write_calls());
}

#[tokio::test]
async fn throttled_renewals_do_not_delay_other_renewals() {
    let world = world();
    let hot = |write: &Write| {
        let renews = matches!(write.guard, Guard::Unchanged(_));
        renews && (write.key == key("hot") || write.key == key("hot too"))
    };
    let a_moment = Duration::from_millis(20);
    // The renewal of `b` is due a moment after the first throttled one, and shares the call of the
    // second.
    let records = vec![
        slow("hot", 15 * SECOND),
        slow("before the second", a_moment).group("hot"),
        slow("hot too", 15 * SECOND).group("hot"),
        slow("before b", a_moment).group("b"),
        slow("b", 15 * SECOND).group("b"),
    ];
    let store = throttled(&world, hot);
    let outcomes = world.clock.drive(world.invoke_on(store, records)).await;
    assert_eq!(labels(&outcomes), ["fenced", "executed", "fenced", "executed", "executed"]);
    world.ledger.assert_once("b");
}

#[tokio::test]
async fn a_claim_that_was_taken_over_before_its_handler_started_is_answered_by_the_other_worker() {
    for (status, outcome) in [(Status::Completed, "replayed"), (Status::InProgress, "busy")] {
        let mut world = world();
        world.policy.concurrency = 1;
        let first = rec("a", move |world: World, _| async move {
            world.store.inner().insert(key("b"), taken_over(status));
            world.clock.sleep(15 * SECOND).await;
            Ok(())
        });
        assert_eq!(world.deliver(vec![first, ok("b")]).await, ["executed", outcome]);
        world.ledger.assert_never("b");
    }
}

#[tokio::test]
async fn a_record_whose_handler_is_stopped_for_want_of_a_renewal_makes_room_for_the_next() {
    let mut world = world();
    world.policy.concurrency = 1;
    let refused = Fault::refuse(StoreErrorKind::Unavailable).for_key(&key("a"));
    let renewals = renews;
    world.store.inject(refused.for_writes(renewals).always());
    let records = vec![slow("a", 15 * SECOND), ok("b")];
    assert_eq!(world.deliver(records).await, ["fenced", "executed"]);
}
