//! Stories whose effects are committed with their completion: they happen once, wherever a worker stops.

use std::time::Duration;

use lambda_idempotency_core::{
    policy::{Lease, Mode, OnTimeout},
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

fn committing(story: Story) -> Story {
    story.choosing(|policy| policy.mode = Mode::Transactional)
}

fn queue() -> Story {
    let story = Story::new(Queue::boxed, batch());
    committing(Story { deliveries: 2, within: Duration::from_mins(1), ..story })
}

#[tokio::test]
async fn a_queue_has_each_effect_once() {
    queue().everywhere().await.assert_exactly_once();
    queue().in_pairs().await.assert_exactly_once();
    queue().sampled(300, 21).await.assert_exactly_once();
}

#[tokio::test]
async fn two_workers_with_the_same_messages_have_each_effect_once() {
    let story = Story { source: Twice::boxed, deliveries: 3, ..queue() };
    let story = Story { within: Duration::from_secs(92), ..story };
    story.everywhere().await.assert_exactly_once();
    story.in_pairs().await.assert_exactly_once();
    story.sampled(300, 22).await.assert_exactly_once();
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
    let story = committing(Story { deliveries: 4, within: Duration::from_secs(92), ..story });
    story.everywhere().await.assert_exactly_once();
    story.in_pairs().await.assert_exactly_once();
}

#[tokio::test]
async fn a_stream_has_each_effect_once() {
    let messages = [message("a"), message("b").takes(1), message("c").refused(1), message("d")];
    let story = Story::new(Stream::boxed, messages).waiting();
    let story = committing(Story { deliveries: 9, within: Duration::from_mins(2), ..story });
    story.everywhere().await.assert_exactly_once();
}

/// A short lease ends while the commit is on its way, and a successor takes over.
#[tokio::test]
async fn short_leases_have_each_effect_once() {
    let renewed = |story: Story| {
        story.choosing(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(3) })
    };
    let twice = Story { source: Twice::boxed, deliveries: 3, ..queue() };
    let twice = renewed(Story { within: Duration::from_secs(92), ..twice });
    twice.everywhere().await.assert_exactly_once();
    twice.sampled(300, 23).await.assert_exactly_once();
    renewed(queue()).sampled(300, 24).await.assert_exactly_once();
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
    let story = committing(story);
    story
        .choosing(|policy| policy.on_timeout = OnTimeout::FailPermanently)
        .everywhere()
        .await
        .assert_exactly_once();
}

/// The checks find a store that completes without the effects, and one that applies them whatever its
/// guards say.
#[tokio::test]
async fn a_store_that_breaks_its_transactions_is_caught() {
    let drops = |write: Write| match &write.record {
        Some(record) if record.status == Status::Completed => {
            Treatment::Apply(write.with_effects(None))
        }
        _ => Treatment::Apply(write),
    };
    let tally = Story { mutant: drops, ..queue() }.everywhere().await;
    let lost = |(_, what): &(_, String)| what.contains("recorded as done without its effect");
    assert!(tally.violations.iter().any(lost), "{tally}");

    let tally = Story { mutant: Treatment::Early, ..queue() }.everywhere().await;
    let twice = |(_, what): &(_, String)| what.contains("committed twice");
    assert!(tally.violations.iter().any(twice), "{tally}");
}
