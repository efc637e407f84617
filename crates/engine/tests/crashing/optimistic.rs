//! Stories without claims: completions are inserted together with their effects, which happen once, wherever a worker
//! stops.

use std::time::Duration;

use lambda_idempotency_core::{
    policy::{Mode, OnTimeout},
    record::Status,
    store::Write,
};

use crate::{
    message::{Message, message},
    source::{Fifo, Queue, Stream, Twice},
    store::Treatment,
    story::Story,
};

/// A message that succeeds, one that fails once, a slow one, a copy, and one whose effect is refused once.
fn batch() -> [Message; 5] {
    [
        message("a"),
        message("b").fails(1),
        message("c").takes(2),
        message("a"),
        message("d").refused(1),
    ]
}

fn optimistic(story: Story) -> Story {
    story.choosing(|policy| policy.mode = Mode::Optimistic)
}

fn queue() -> Story {
    let story = Story::new(Queue::boxed, batch());
    optimistic(Story { deliveries: 2, within: Duration::from_mins(1), ..story })
}

fn twice() -> Story {
    Story { source: Twice::boxed, deliveries: 3, within: Duration::from_secs(92), ..queue() }
}

#[tokio::test]
async fn a_queue_has_each_effect_once() {
    let tally = queue().everywhere().await;
    tally.assert_once_without_claims();
    assert!(tally.pending > 0, "{tally}");
    queue().in_pairs().await.assert_once_without_claims();
    queue().sampled(300, 31).await.assert_once_without_claims();
}

#[tokio::test]
async fn two_workers_with_the_same_messages_have_each_effect_once() {
    twice().everywhere().await.assert_once_without_claims();
    twice().in_pairs().await.assert_once_without_claims();
    twice().sampled(300, 32).await.assert_once_without_claims();
}

#[tokio::test]
async fn a_fifo_queue_has_each_effect_once_and_in_order() {
    let group = |message: Message, group| message.group(group);
    let story = Story::new(
        |messages| Fifo::boxed(messages, 4),
        [
            group(message("a1"), "a"),
            group(message("b1").takes(1), "b"),
            group(message("a2").refused(1), "a"),
            group(message("b2"), "b"),
            group(message("a1"), "a"),
            group(message("a3"), "a"),
        ],
    );
    let story = optimistic(Story { deliveries: 4, within: Duration::from_secs(92), ..story });
    story.everywhere().await.assert_once_without_claims();
    story.in_pairs().await.assert_once_without_claims();
}

#[tokio::test]
async fn a_stream_has_each_effect_once() {
    let messages = [message("a"), message("b").takes(1), message("c").refused(1), message("d")];
    let story = Story::new(Stream::boxed, messages).waiting();
    let story = optimistic(Story { deliveries: 9, within: Duration::from_mins(2), ..story });
    story.everywhere().await.assert_once_without_claims();
}

/// A permanent failure at the deadline excludes the effect, and the other way round.
#[tokio::test]
async fn timeouts_that_are_permanent_have_no_effect() {
    let story = Story {
        deliveries: 6,
        within: Duration::from_secs(182),
        gives_up: |given_up, timed_out| given_up == timed_out,
        ..Story::new(|messages| Queue::redriving(messages, 6), batch())
    };
    let story = optimistic(story);
    story
        .choosing(|policy| policy.on_timeout = OnTimeout::FailPermanently)
        .everywhere()
        .await
        .assert_once_without_claims();
}

/// The checks find a store that inserts completions without their guards, and one that drops effects.
#[tokio::test]
async fn a_store_that_breaks_its_transactions_is_caught() {
    let early = Story { mutant: Treatment::Early, ..twice() }.everywhere().await;
    let doubled = |(_, what): &(_, String)| what.contains("committed twice");
    assert!(early.violations.iter().any(doubled), "{early}");

    let drops = |write: Write| match &write.record {
        Some(record) if record.status == Status::Completed => {
            Treatment::Apply(write.with_effects(None))
        }
        _ => Treatment::Apply(write),
    };
    let tally = Story { mutant: drops, ..queue() }.everywhere().await;
    let lost = |(_, what): &(_, String)| what.contains("recorded as done without its effect");
    assert!(tally.violations.iter().any(lost), "{tally}");
}
