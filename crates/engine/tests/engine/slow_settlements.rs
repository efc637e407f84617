//! A record whose handler has ended and whose settlement is slow does not keep suspects from their turn, nor others from theirs.

use lambda_idempotency_core::{clock::Clock, record::Status, store::Write};
use lambda_idempotency_testkit::faults::Fault;

use crate::{
    quarantine::{SECOND, dies_with},
    support::{World, key, labels, ok, rec, slow, throttled},
};

fn completes(write: &Write, label: &str) -> bool {
    let is_completed =
        |write: &Write| write.record.as_ref().is_some_and(|r| r.status == Status::Completed);
    write.key == key(label) && is_completed(write)
}

#[tokio::test]
async fn a_throttled_completion_of_a_suspect_does_not_keep_the_others_of_its_batch() {
    let world = World::new();
    dies_with(&world, &["s"]).await;
    let store = throttled(&world, |write| completes(write, "s"));
    let batch = vec![ok("s").receives(2), ok("b").receives(1), ok("c").receives(1)];
    let outcomes = labels(&world.clock.drive(world.invoke_on(store, batch)).await);
    assert_eq!(outcomes[1..], ["executed"; 2]);
    world.ledger.assert_each_once(["s", "b", "c"]);
}

#[tokio::test]
async fn a_throttled_completion_does_not_keep_a_suspect_from_its_turn() {
    let world = World::new();
    dies_with(&world, &["s"]).await;
    let store = throttled(&world, |write| completes(write, "hot"));
    let batch = vec![ok("hot").receives(1), ok("s").receives(3)];
    let outcomes = labels(&world.clock.drive(world.invoke_on(store, batch)).await);
    assert_eq!(outcomes[1], "executed");
}

/// They have not ended.
#[tokio::test]
async fn a_slow_settlement_does_not_end_the_turn_of_the_others_of_its_group() {
    let world = World::new();
    dies_with(&world, &["s", "t"]).await;
    let store = throttled(&world, |write| completes(write, "s"));
    let until = world.clock.now().plus(5 * SECOND);
    let last = rec("b", move |world: World, _| async move {
        assert!(world.clock.now() >= until, "it runs beside a suspect");
        Ok(())
    });
    let batch = vec![ok("s").receives(2), slow("t", 5 * SECOND).receives(2), last.receives(1)];
    let outcomes = labels(&world.clock.drive(world.invoke_on(store, batch)).await);
    assert_eq!(outcomes[1..], ["executed"; 2]);
}

/// The store does not know yet that the process survived it.
#[tokio::test]
async fn nothing_starts_while_the_completion_of_a_suspect_is_written() {
    let world = World::new();
    dies_with(&world, &["s"]).await;
    let delay = Fault::delay(world.clock.clone(), SECOND / 2);
    world.store.inject(delay.for_writes(|write| completes(write, "s")));
    let last = rec("b", |world: World, _| async move {
        assert_eq!(world.stored("s").await.unwrap().status, Status::Completed);
        Ok(())
    });
    let batch = vec![ok("s").receives(2), last.receives(1)];
    assert_eq!(world.deliver(batch).await, ["executed"; 2]);
}
