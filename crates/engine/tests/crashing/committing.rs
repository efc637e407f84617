//! Stories whose effects are committed with their completion: they happen once, wherever a worker stops, with a claim
//! and, in optimistic mode, without one.

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
    sweep::Tally,
};

const MODES: [Mode; 2] = [Mode::Transactional, Mode::Optimistic];

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

fn committing(mode: Mode, story: Story) -> Story {
    story.choosing(|policy| policy.mode = mode)
}

fn queue(mode: Mode) -> Story {
    let story = Story::new(Queue::boxed, batch());
    committing(mode, Story { deliveries: 2, within: Duration::from_mins(1), ..story })
}

fn twice(mode: Mode) -> Story {
    Story { source: Twice::boxed, deliveries: 3, within: Duration::from_secs(92), ..queue(mode) }
}

#[track_caller]
fn assert_once(mode: Mode, tally: &Tally) {
    match mode.claims() {
        true => tally.assert_exactly_once(),
        false => tally.assert_once_without_claims(),
    }
}

#[tokio::test]
async fn a_queue_has_each_effect_once() {
    for mode in MODES {
        let tally = queue(mode).everywhere().await;
        assert_once(mode, &tally);
        assert!(tally.pending > 0, "{tally}");
        assert_once(mode, &queue(mode).in_pairs().await);
        assert_once(mode, &queue(mode).sampled(300, 21).await);
    }
}

#[tokio::test]
async fn two_workers_with_the_same_messages_have_each_effect_once() {
    for mode in MODES {
        assert_once(mode, &twice(mode).everywhere().await);
        assert_once(mode, &twice(mode).in_pairs().await);
        assert_once(mode, &twice(mode).sampled(300, 22).await);
    }
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
    let story = Story { deliveries: 4, within: Duration::from_secs(92), ..story };
    for mode in MODES {
        let story = committing(mode, story.clone());
        assert_once(mode, &story.everywhere().await);
        assert_once(mode, &story.in_pairs().await);
    }
}

#[tokio::test]
async fn a_stream_has_each_effect_once() {
    let messages = [message("a"), message("b").takes(1), message("c").refused(1), message("d")];
    let story = Story::new(Stream::boxed, messages).waiting();
    let story = Story { deliveries: 9, within: Duration::from_mins(2), ..story };
    for mode in MODES {
        assert_once(mode, &committing(mode, story.clone()).everywhere().await);
    }
}

/// A short lease ends while the commit is on its way, and a successor takes over.
#[tokio::test]
async fn short_leases_have_each_effect_once() {
    let renewed = |story: Story| {
        story.choosing(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(3) })
    };
    let twice = renewed(twice(Mode::Transactional));
    twice.everywhere().await.assert_exactly_once();
    twice.sampled(300, 23).await.assert_exactly_once();
    renewed(queue(Mode::Transactional)).sampled(300, 24).await.assert_exactly_once();
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
    let story = story.choosing(|policy| policy.on_timeout = OnTimeout::FailPermanently);
    for mode in MODES {
        assert_once(mode, &committing(mode, story.clone()).everywhere().await);
    }
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
    for mode in MODES {
        let tally = Story { mutant: drops, ..queue(mode) }.everywhere().await;
        let lost = |(_, what): &(_, String)| what.contains("recorded as done without its effect");
        assert!(tally.violations.iter().any(lost), "{tally}");

        let tally = Story { mutant: Treatment::Early, ..twice(mode) }.everywhere().await;
        let doubled = |(_, what): &(_, String)| what.contains("committed twice");
        assert!(tally.violations.iter().any(doubled), "{tally}");
    }
}
