//! Messages that are stored with a completion, and sent before the delivery is acknowledged.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    failure::Failure,
    memory::MemoryEffects,
    outbox::{Message, PublishError},
    outcome::Outcome,
    policy::Mode,
    record::{IdempotencyRecord, Status},
    store::StoreErrorKind,
};
use lambda_idempotency_engine::call::Call;
use lambda_idempotency_testkit::faults::Fault;

use crate::post::{Post, completions, in_order, marks, post, post_in, publishing};
use crate::support::{Rec, START, World, key, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn messages_are_stored_with_the_completion_sent_and_marked_as_sent() {
    let post = post();
    let outcomes = post.deliver(vec![publishing("a", &["1", "2"]), ok("b")]).await;
    assert_eq!(outcomes, ["executed"; 2]);
    assert_eq!(post.wire.bodies(), ["1", "2"]);
    let of_a: Vec<_> =
        post.world.writes().into_iter().filter(|write| write.key == key("a")).collect();
    let stored: Vec<_> = of_a
        .iter()
        .map(|write| write.record.as_ref().is_some_and(|record| record.outbox.is_some()))
        .collect();
    assert_eq!(stored, [false, true, false], "claimed, completed, marked");
    let marked = post.world.stored("a").await.unwrap();
    let completed = of_a[1].record.clone().unwrap();
    assert_eq!((marked.status, &marked.result), (Status::Completed, &completed.result));
    assert_eq!((marked.outbox, marked.expires_at), (None, completed.expires_at));
    assert_eq!(post.deliver(vec![publishing("a", &["1", "2"])]).await, ["replayed"]);
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["1", "2"])]).await, ["replayed"]);
    assert_eq!(post.wire.bodies(), ["1", "2"]);
}

#[tokio::test]
async fn messages_of_a_handler_that_did_not_return_are_dropped() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(1);
    let post = post_in(world);
    let fails = rec("a", |_, call: Call| async move {
        call.publish(Message::new("queue", "a"))?;
        Err(Failure::transient("no luck"))
    });
    let panics = rec("b", |_, call: Call| async move {
        call.publish(Message::new("queue", "b"))?;
        panic!("no luck")
    });
    let hangs = rec("c", |world: World, call: Call| async move {
        call.publish(Message::new("queue", "c"))?;
        world.clock.sleep(60 * SECOND).await;
        Ok(())
    });
    let declines = publishing("d", &["d"]).declines();
    let outcomes = post.deliver(vec![fails, panics, hangs, declines]).await;
    assert_eq!(outcomes, ["failed", "failed", "timed_out", "declined"]);
    assert_eq!(post.wire.bodies(), [""; 0]);
    assert!(!post.is_pending("a").await && !post.is_pending("c").await);
}

#[tokio::test]
async fn a_delivery_whose_messages_cannot_be_sent_returns_and_the_next_one_sends_them() {
    let post = post();
    post.wire.refuse(Some("2"));
    let outcomes = post.outcomes(vec![publishing("a", &["1", "2"])]).await;
    let [Outcome::Unsent { error, result: Some(_) }] = &*outcomes else { panic!("{outcomes:?}") };
    assert_eq!(error.to_string(), "a message was not sent: refused by the test");
    assert!(!outcomes[0].is_acknowledged() && post.is_pending("a").await);

    assert_eq!(post.deliver(vec![publishing("a", &["1", "2"])]).await, ["unsent"]);
    post.wire.refuse(None);
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["1", "2"])]).await, ["replayed"]);
    assert_eq!(post.world.ledger.executed("a"), 1, "the handler runs once");
    assert_eq!(post.wire.consumed(), ["1", "2"]);
    assert!(!post.is_pending("a").await);
}

#[tokio::test]
async fn nothing_starts_in_its_group_behind_a_record_with_unsent_messages() {
    let post = post();
    post.wire.refuse(Some("1"));
    let batch = vec![publishing("a", &["1"]).group("g"), ok("b").group("g")];
    assert_eq!(post.deliver(batch).await, ["unsent", "returned"]);
    post.world.ledger.assert_never("b");
}

/// Its completion is lost, so the next delivery calls the handler under another claim.
#[tokio::test]
async fn messages_of_a_handler_that_runs_again_have_the_same_ids() {
    let post = post();
    let refused = Fault::refuse(StoreErrorKind::Denied).for_writes(completions());
    post.world.store.inject(refused.always());
    assert_eq!(post.deliver(vec![publishing("a", &["1", "2"])]).await, ["completion_lost"]);
    post.world.store.heal();
    post.world.clock.advance(900 * SECOND);
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["1", "2"])]).await, ["executed"]);
    assert_eq!(post.wire.bodies(), ["1", "2", "1", "2"]);
    assert_eq!(post.wire.consumed(), ["1", "2"]);
}

#[tokio::test]
async fn messages_to_one_destination_of_records_that_complete_together_share_a_call() {
    let post = post();
    let records =
        vec![publishing("a", &["1", "2"]), in_order("b", &["3", "4"]), publishing("c", &["5"])];
    assert_eq!(post.deliver(records).await, ["executed"; 3]);
    let mut calls = post.wire.calls();
    assert_eq!(calls.pop(), Some(1), "in order, one message after the other");
    calls.sort_unstable();
    assert_eq!(calls, [1, 3], "a call for each destination");
}

#[tokio::test]
async fn a_sender_that_does_not_answer_is_waited_for_until_the_response_is_due() {
    let post = post();
    post.wire.take(3600 * SECOND);
    let begun = post.world.clock.now();
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["unsent"]);
    assert!(post.world.clock.now().since(begun) <= 6 * SECOND);
    post.wire.take(Duration::ZERO);
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["replayed"]);
    assert_eq!(post.wire.bodies(), ["1"]);
}

/// Its handler is not run again for messages that were sent. The mark only saves sending them again, so it is not worth
/// the time of an outage.
#[tokio::test]
async fn a_delivery_is_acknowledged_although_the_store_does_not_know_that_its_messages_are_sent() {
    let post = post();
    post.world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(marks()).always());
    let begun = post.world.clock.now();
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["executed"]);
    let took = post.world.clock.now().since(begun);
    assert!(took <= 6 * SECOND, "{took:?}");
    assert!(post.is_pending("a").await);
    post.world.store.heal();
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["1"])]).await, ["replayed"]);
    assert_eq!((post.wire.bodies().len(), post.wire.consumed().len()), (2, 1));
    assert!(!post.is_pending("a").await);
}

#[tokio::test]
async fn messages_of_a_completion_that_could_not_be_recorded_are_sent_or_the_record_returns() {
    let post = post();
    post.world
        .store
        .inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(completions()).always());
    let begun = post.world.clock.now();
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["completion_lost"]);
    let took = post.world.clock.now().since(begun);
    assert!(
        (13 * SECOND..16 * SECOND).contains(&took),
        "half of 30 s is left for sending: {took:?}"
    );
    assert_eq!(post.wire.bodies(), ["1"]);
    post.wire.refuse(Some("2"));
    assert_eq!(post.deliver(vec![publishing("b", &["2"])]).await, ["unsent"]);
}

/// The record holds the messages until they are sent, by a redelivery or a relay that may come hours later.
#[tokio::test]
async fn a_call_with_messages_does_not_shorten_how_long_its_key_answers() {
    let post = post();
    let record = || {
        rec("a", |_, call: Call| async move {
            call.retain_for(Duration::from_mins(10));
            call.publish(Message::new("queue", "1"))?;
            Ok(())
        })
    };
    post.wire.refuse(Some("1"));
    assert_eq!(post.deliver(vec![record()]).await, ["unsent"]);
    post.world.clock.advance(Duration::from_mins(11));
    post.wire.refuse(None);
    assert_eq!(post.deliver(vec![record()]).await, ["replayed"], "its handler does not run again");
    assert_eq!(post.wire.bodies(), ["1"]);
}

/// Each message of the call has its own answer, and the first one of each record is refused.
#[tokio::test]
async fn records_that_share_a_call_of_the_sender_read_their_own_answers() {
    let post = post();
    post.wire.refuse(Some("1"));
    let records = || vec![publishing("a", &["1", "2"]), publishing("b", &["1"])];
    assert_eq!(post.deliver(records()).await, ["unsent"; 2]);
    assert_eq!(post.wire.calls(), [3], "one call");
    post.wire.refuse(None);
    assert_eq!(post.deliver_elsewhere(records()).await, ["replayed"; 2]);
    let mut consumed = post.wire.consumed();
    consumed.sort_unstable();
    assert_eq!(consumed, ["1", "1", "2"]);
}

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

/// In transactional mode the answers to all tries are lost, and the next settlement finds the completion.
#[tokio::test]
async fn a_completion_whose_answer_was_lost_has_its_messages_sent() {
    for (post, lost) in [(post(), 2), (transactional(), usize::MAX)] {
        post.world.store.inject(Fault::lose_answer().for_writes(completions()).times(lost));
        let record = if lost > 2 { committing() } else { publishing("a", &["1"]) };
        assert_eq!(post.deliver(vec![record]).await, ["executed"]);
        assert_eq!(post.wire.bodies(), ["1"]);
        assert!(!post.is_pending("a").await);
    }
}
