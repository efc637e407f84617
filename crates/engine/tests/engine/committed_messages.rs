//! Messages that are committed with effects, in one transaction.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::{Clock as _, Timestamp},
    memory::MemoryEffects,
    outbox::{Message, PublishError},
    policy::Mode,
    record::{IdempotencyRecord, Status},
    store::StoreErrorKind,
};
use lambda_idempotency_engine::call::Call;
use lambda_idempotency_testkit::faults::Fault;

use crate::post::{Post, completions, post_in};
use crate::support::{Rec, START, World, key, rec};

const SECOND: Duration = Duration::from_secs(1);

fn transactional() -> Post {
    let mut world = World::new();
    world.policy.mode = Mode::Transactional;
    post_in(world)
}

/// A record whose handler collects an effect and publishes a message.
fn committing() -> Rec {
    rec("a", |_, call: Call| async move {
        call.collect(|effects: &mut MemoryEffects| effects.add(|| ()))?;
        call.publish(Message::new("queue", "1"))?;
        Ok(())
    })
}

/// What was not committed was not done: a message would tell of it all the same.
#[tokio::test]
async fn nothing_is_sent_if_the_effects_were_not_committed() {
    let post = transactional();
    let refuse = Fault::refuse(StoreErrorKind::Throttled).for_writes(completions());
    post.world.store.inject(refuse.always());
    assert_eq!(post.deliver(vec![committing()]).await, ["uncommitted"]);
    assert_eq!(post.wire.bodies(), [""; 0]);
    post.world.store.heal();
    post.world.clock.advance(60 * SECOND);
    assert_eq!(post.deliver(vec![committing()]).await, ["executed"]);
    assert_eq!(post.wire.bodies(), ["1"]);
}

#[tokio::test]
async fn messages_of_a_commit_that_turns_out_to_be_applied_are_sent() {
    let post = transactional();
    post.world.store.inject(Fault::lose_answer().for_writes(completions()).always());
    assert_eq!(post.deliver(vec![committing()]).await, ["executed"]);
    assert_eq!(post.wire.bodies(), ["1"]);
    assert!(!post.is_pending("a").await);
    post.world.store.heal();
    assert_eq!(post.deliver(vec![committing()]).await, ["replayed"]);
    assert_eq!(post.world.ledger.executed("a"), 1);
}

/// An operation that became optimistic meets what it completed before.
#[tokio::test]
async fn an_optimistic_attempt_sends_what_the_completion_that_it_meets_has_left() {
    let mut world = World::new();
    world.policy.mode = Mode::Optimistic;
    let post = post_in(world);
    let late = rec("a", |world: World, call: Call| async move {
        assert_eq!(call.publish(Message::new("queue", "ours")), Err(PublishError::Unprotected));
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(1 << 40));
        record.outbox = Some(r#"[{"to":"queue","body":"theirs"}]"#.into());
        world.store.inner().insert(key("a"), record);
        Ok(())
    });
    assert_eq!(post.deliver(vec![late]).await, ["superseded"]);
    assert_eq!(post.wire.bodies(), ["theirs"]);
    assert!(!post.is_pending("a").await);
}

/// Half of the time is left for sending.
#[tokio::test]
async fn a_commit_with_messages_is_given_up_after_half_of_the_time() {
    let post = transactional();
    let refuse = Fault::refuse(StoreErrorKind::Throttled).for_writes(completions());
    post.world.store.inject(refuse.always());
    assert_eq!(post.deliver(vec![committing()]).await, ["uncommitted"]);
    let took = post.world.clock.now().since(START);
    assert!((13 * SECOND..15 * SECOND).contains(&took), "{took:?} of 30 s");
}
