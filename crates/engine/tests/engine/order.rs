//! Sources that keep the order of records within a group.

use std::time::Duration;

use crate::support::{START, World, assert_took, failing, hanging, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_group_runs_in_order_and_groups_run_concurrently() {
    let world = World::new();
    let second = rec("b", |world: World, _| async move {
        world.ledger.assert_once("a");
        world.ledger.assert_never("c");
        Ok(())
    });
    let outcomes = world
        .deliver(vec![
            slow("a", 2 * SECOND).group("g"),
            second.group("g"),
            slow("c", 5 * SECOND).group("h"),
        ])
        .await;
    assert_eq!(outcomes, ["executed"; 3]);
    assert_took(&world, START, 5 * SECOND);
}

#[tokio::test]
async fn a_copy_in_another_group_waits_for_its_turn() {
    let world = World::new();
    let outcomes =
        world.deliver(vec![ok("a").group("g"), failing("b").group("h"), ok("a").group("h")]).await;
    assert_eq!(outcomes, ["executed", "failed", "returned"]);
    let outcomes =
        world.deliver(vec![ok("x").group("g"), ok("y").group("h"), ok("x").group("h")]).await;
    assert_eq!(outcomes, ["executed", "executed", "coalesced"]);
}

#[tokio::test]
async fn keys_that_cross_two_groups_do_not_deadlock() {
    let world = World::new();
    let outcomes = world
        .deliver(vec![
            slow("a", SECOND).group("g"),
            slow("b", SECOND).group("h"),
            ok("b").payload("other").group("g"),
            ok("a").payload("other").group("h"),
        ])
        .await;
    assert_eq!(outcomes, ["executed", "executed", "replayed", "replayed"]);
}

#[tokio::test]
async fn a_busy_head_holds_back_only_its_group() {
    let world = World::new();
    let forever = hanging("a");
    world.dies(vec![forever]).await;
    let outcomes =
        world.deliver(vec![ok("a").group("g"), ok("b").group("g"), ok("c").group("h")]).await;
    assert_eq!(outcomes, ["busy", "returned", "executed"]);
    assert_eq!(world.stored("b").await, None);
}

#[tokio::test]
async fn the_record_delivered_most_often_starts_first() {
    let mut world = World::new();
    world.policy.concurrency = 1;
    world.timeout = Some(10 * SECOND);
    let slow = |label, receives| slow(label, 4 * SECOND).receives(receives);
    let records = vec![slow("a", 1), slow("b", 3), slow("c", 2), slow("d", 3)];
    let outcomes = world.deliver(records).await;
    assert_eq!(outcomes, ["returned", "executed", "returned", "executed"]);
}
