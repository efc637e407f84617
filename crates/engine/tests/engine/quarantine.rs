//! Records that may have killed their process, and those that only look so.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{clock::Clock as _, policy::OnConflict};

use crate::looks::throttled_reads;
use crate::support::{World, assert_took, declining, failing, hanging, ok, rec, slow};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const LABELS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// A worker that claims the keys of these records and is killed while their handlers run.
pub(crate) async fn dies_with(world: &World, labels: &[&'static str]) {
    let forever = |label: &&'static str| hanging(label);
    let records = labels.iter().map(forever).collect();
    world.dies(records).await;
    world.clock.advance(40 * SECOND);
}

#[tokio::test]
async fn a_record_that_was_stopped_is_told_that_an_attempt_was_lost() {
    let world = World::new();
    for lost in 0..3 {
        let patient = rec("a", move |world: World, call| async move {
            assert_eq!(call.lost_attempts(), lost);
            world.clock.sleep(40 * SECOND).await;
            Ok(())
        });
        assert_eq!(world.deliver(vec![patient]).await, ["timed_out"]);
        world.clock.advance(10 * SECOND);
    }
}

#[tokio::test]
async fn a_record_that_survives_its_handler_leaves_quarantine() {
    for (record, outcome) in [(failing("a"), "failed"), (declining("a"), "declined")] {
        let world = World::new();
        dies_with(&world, &["a"]).await;
        assert_eq!(world.deliver(vec![record]).await, [outcome]);
        let stored = world.stored("a").await.unwrap();
        assert_eq!((stored.lost_attempts, stored.consecutive_losses), (1, 0));
        let begun = world.clock.now();
        let outcomes = world.deliver(vec![slow("a", SECOND), slow("b", SECOND)]).await;
        assert_eq!(outcomes, ["executed"; 2]);
        assert_took(&world, begun, SECOND);
    }
}

/// It was stopped in time once, which says nothing of the attempt that came after.
#[tokio::test]
async fn a_death_after_a_timeout_is_suspicious() {
    let world = World::new();
    assert_eq!(world.deliver(vec![slow("a", 40 * SECOND)]).await, ["timed_out"]);
    world.clock.advance(10 * SECOND);
    dies_with(&world, &["a"]).await;
    let suspect = rec("a", |world: World, _| async move {
        assert_eq!(world.stored("a").await.unwrap().consecutive_losses, 1);
        Ok(())
    });
    assert_eq!(world.deliver(vec![suspect]).await, ["executed"]);
}

#[tokio::test]
async fn no_key_is_looked_at_while_a_suspect_runs() {
    let mut world = World { timeout: Some(20 * SECOND), ..World::new() };
    dies_with(&world, &["x"]).await;
    // A worker of another process holds `a` meanwhile.
    world.dies(vec![hanging("a")]).await;
    world.timeout = Some(60 * SECOND);
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let suspect = rec("x", |world: World, _| async move {
        let looks = world.store.read_calls();
        world.clock.sleep(5 * SECOND).await;
        assert_eq!(world.store.read_calls(), looks);
        Ok(())
    });
    assert_eq!(world.deliver(vec![suspect, ok("a")]).await, ["executed"; 2]);
}

/// If it killed the process, the source would not learn that the other record is done. The other one is done in this
/// invocation, or was done before.
#[tokio::test]
async fn a_suspect_that_was_lost_three_times_gives_way_to_a_record_that_is_done() {
    for (losses, receives, expected) in [
        (2, 5, "executed"),
        (3, 5, "returned"),
        (4, 7, "returned"),
        (3, 6, "executed"),
        (3, 0, "executed"),
    ] {
        let world = World::new();
        for _ in 0..losses {
            dies_with(&world, &["a"]).await;
        }
        for done in ["executed", "replayed"] {
            let outcomes = world.deliver(vec![ok("a").receives(receives), ok("b")]).await;
            let again = done == "replayed" && expected == "executed";
            let expected = if again { "replayed" } else { expected };
            assert_eq!(outcomes, [expected, done], "{losses} losses, receive {receives}");
        }
        let alone = world.deliver(vec![ok("a").receives(receives)]).await;
        assert_ne!(alone, ["returned"], "there is nothing to acknowledge");
    }
}

/// A busy queue has something new for every invocation. A redrive keeps lost attempts, and its source counts receives
/// from one again. Where looks fail, its claim finds that it is a suspect, before anything else is claimed.
#[tokio::test]
async fn a_suspect_beside_the_fresh_records_of_a_busy_queue_runs() {
    for (deaths, first, looks_fail) in
        [(1, 3, false), (1, 3, true), (1, 1, false), (2, 1, false), (5, 1, false)]
    {
        let mut world = World::new();
        world.policy.concurrency = 4;
        for _ in 0..deaths {
            dies_with(&world, &["a"]).await;
        }
        if looks_fail {
            world.store.inject(throttled_reads());
        }
        for (receives, outcome) in [(first, "returned"), (first + 1, "executed")] {
            let mut batch = vec![ok("a").receives(receives)];
            let fresh = (0..4).map(|n| &*format!("fresh {receives} {n}").leak());
            batch.extend(fresh.map(|label| slow(label, 16 * SECOND).receives(1)));
            let outcomes = world.deliver(batch).await;
            assert_eq!(outcomes[0], outcome, "{deaths} deaths, receive {receives}");
            assert_eq!(outcomes[1..], ["executed"; 4]);
        }
    }
}

/// As in streams: new records in the order of the event, then suspects, the less suspected first.
#[tokio::test]
async fn where_receives_are_not_counted_suspects_go_after_others_by_their_losses() {
    let world = World::new();
    for label in ["b", "a", "d", "b"] {
        dies_with(&world, &[label]).await;
    }
    let begun: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let noted = |label| {
        let begun = Arc::clone(&begun);
        rec(label, move |world: World, _| async move {
            begun.lock().unwrap().push(label);
            world.clock.sleep(SECOND).await;
            Ok(())
        })
    };
    let batch = ["a", "b", "c", "d", "e"].map(noted).into();
    assert_eq!(world.deliver(batch).await, ["executed"; 5]);
    assert_eq!(*begun.lock().unwrap(), ["c", "e", "a", "d", "b"]);
}

#[tokio::test]
async fn nothing_is_claimed_or_begun_before_suspects_that_go_first() {
    let world = World::new();
    dies_with(&world, &["a"]).await;
    let first = rec("a", |world: World, _| async move {
        world.clock.sleep(SECOND).await;
        assert_eq!(world.stored("b").await, None);
        assert_eq!(world.stored("c").await, None);
        world.ledger.assert_never("d");
        Ok(())
    });
    let batch =
        vec![ok("b").receives(1), ok("c").receives(3), ok("d").unprotected(), first.receives(2)];
    assert_eq!(world.deliver(batch).await, ["executed", "executed", "unprotected", "executed"]);
}

/// What is received again is read before it is written, and together with what is new.
#[tokio::test]
async fn a_look_costs_one_read_and_saves_the_writes_that_would_fail() {
    let world = World::new();
    assert_eq!(world.deliver(vec![ok("done"), failing("failed")]).await, ["executed", "failed"]);
    let (writes, reads) = (world.store.write_calls(), world.store.read_calls());
    let batch = vec![ok("new").receives(1), ok("failed").receives(2), ok("done").receives(2)];
    assert_eq!(world.deliver(batch).await, ["executed", "executed", "replayed"]);
    // One look, one call of claims, one of completions.
    assert_eq!((world.store.write_calls(), world.store.read_calls()), (writes + 2, reads + 1));
    let batch = vec![ok("new 1").receives(1), ok("new 2").receives(1)];
    assert_eq!(world.deliver(batch).await, ["executed"; 2]);
    assert_eq!((world.store.write_calls(), world.store.read_calls()), (writes + 4, reads + 1));
}

/// The least suspected go first, whatever their receives; the suspect that was received most often says when.
#[tokio::test]
async fn all_suspects_of_an_invocation_are_on_one_side_of_the_others() {
    for (receives, begun) in [
        ([2, 3, 4], ["b", "a", "c", "x"]),
        ([2, 4, 3], ["b", "a", "c", "x"]),
        ([2, 4, 5], ["x", "b", "a", "c"]),
    ] {
        let world = World::new();
        for label in ["a", "c", "c"] {
            dies_with(&world, &[label]).await;
        }
        dies_with(&world, &["b"]).await;
        let order: Arc<Mutex<Vec<&'static str>>> = Arc::default();
        let noted = |label, receives| {
            let order = Arc::clone(&order);
            let noted = rec(label, move |world: World, _| async move {
                order.lock().unwrap().push(label);
                world.clock.sleep(SECOND).await;
                Ok(())
            });
            noted.receives(receives)
        };
        let [a, b, c] = receives;
        let batch = vec![noted("a", a), noted("x", 1), noted("b", b), noted("c", c)];
        assert_eq!(world.deliver(batch).await, ["executed"; 4]);
        assert_eq!(*order.lock().unwrap(), begun, "{receives:?}");
    }
}

/// One suspect is known at once; the leases of nine more end while it runs.
#[tokio::test]
async fn suspects_that_are_found_later_run_together_too() {
    let mut world = World::new();
    dies_with(&world, &LABELS[..1]).await;
    let forever = |label: &&'static str| hanging(label);
    let others = LABELS[1..].iter().map(forever).collect();
    world.dies(others).await;
    let lease = world.stored("b").await.unwrap().lease_until.unwrap();
    world.clock.advance(lease.since(world.clock.now()));
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let begun = world.clock.now();
    let batch = LABELS.map(|label| slow(label, 2 * SECOND).receives(2)).into();
    assert_eq!(world.deliver(batch).await, ["executed"; 10]);
    // The first one, then the others.
    assert_took(&world, begun, 4 * SECOND);
}

/// More were received again than are looked at.
#[tokio::test]
async fn a_suspect_that_goes_first_goes_before_records_that_were_not_looked_at() {
    let world = World::new();
    let done: Vec<&'static str> = (0..99).map(|n| &*format!("done {n}").leak()).collect();
    let all = || done.iter().map(|label| ok(label).receives(4));
    assert_eq!(world.deliver(all().collect()).await, ["executed"; 99]);
    dies_with(&world, &["a"]).await;
    let first = rec("a", |world: World, _| async move {
        world.ledger.assert_never("last");
        Ok(())
    });
    let batch = all().chain([first.receives(4), ok("last").receives(4)]).collect();
    assert_eq!(world.deliver(batch).await[99..], ["executed"; 2]);
}

/// `a` has waited for another worker, so that too little time is left for it, but not for `b`.
#[tokio::test]
async fn a_suspect_for_which_it_is_too_late_does_not_keep_the_others_of_its_group() {
    let mut world = World::new();
    assert_eq!(world.deliver(vec![slow("pace", SECOND / 10)]).await, ["executed"]);
    dies_with(&world, &LABELS[1..8]).await;
    world.timeout = Some(26 * SECOND);
    let forever = hanging("a");
    world.dies(vec![forever]).await;
    world.timeout = Some(30 * SECOND);
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let batch = LABELS[..8].iter().map(|label| ok(label).receives(2)).collect();
    let outcomes = world.deliver(batch).await;
    assert_eq!(outcomes[0], "returned");
    assert_eq!(outcomes[1..8], ["executed"; 7]);
}

#[tokio::test]
async fn a_suspect_that_waits_until_the_handler_deadline_is_returned() {
    let world = World::new();
    dies_with(&world, &["a"]).await;
    let begun = world.clock.now();
    let batch = vec![ok("a").receives(3), slow("b", 40 * SECOND).receives(1)];
    assert_eq!(world.deliver(batch).await, ["returned", "timed_out"]);
    assert!(world.clock.now().since(begun) < 30 * SECOND);
    let lost =
        world.stored("a").await.map(|stored| (stored.lost_attempts, stored.consecutive_losses));
    assert_eq!(lost, Some((0, 0)), "nothing was claimed");
}

/// There is time for one of the others, and `retried` was received more often.
#[tokio::test]
async fn what_was_received_in_vain_most_often_goes_before_what_failed_at_each_receive() {
    let mut world = World::new();
    world.policy.concurrency = 1;
    assert_eq!(world.deliver(vec![slow("pace", 20 * SECOND)]).await, ["executed"]);
    for receives in 1..=4 {
        assert_eq!(world.deliver(vec![failing("retried").receives(receives)]).await, ["failed"]);
    }
    dies_with(&world, &["a"]).await;
    let batch = vec![
        slow("a", 20 * SECOND).receives(3),
        slow("retried", 20 * SECOND).receives(5),
        slow("x", 20 * SECOND).receives(3),
    ];
    assert_eq!(world.deliver(batch).await, ["returned", "returned", "executed"]);
}
