//! Stories whose handlers have a step before their effect. It runs once, unless a worker stops between the
//! step's effect and its record; and what comes after it relies on it.

use std::time::Duration;

use lambda_idempotency_core::{
    policy::{Lease, Mode, OnTimeout},
    record::Status,
    store::{Guard, Write},
};

use crate::{
    message::{Message, message},
    source::{Fifo, Queue, Stream, Twice},
    store::Treatment,
    story::Story,
};

/// Messages with a step: one that succeeds, one that fails once after it, a slow one and a copy; and one without.
fn batch() -> [Message; 5] {
    [
        message("a").stepping(),
        message("b").stepping().fails(1),
        message("c").stepping().takes(2),
        message("a").stepping(),
        message("d"),
    ]
}

fn queue() -> Story {
    let story = Story::new(Queue::boxed, batch());
    Story { deliveries: 2, within: Duration::from_mins(1), ..story }
}

fn twice() -> Story {
    Story { source: Twice::boxed, deliveries: 3, within: Duration::from_secs(92), ..queue() }
}

fn renewed(story: Story) -> Story {
    story.choosing(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(3) })
}

#[tokio::test]
async fn a_queue_runs_each_step_once_unless_a_worker_stops_before_it_is_kept() {
    queue().everywhere().await.assert_steps();
    queue().in_pairs().await.assert_steps();
    queue().sampled(300, 31).await.assert_steps();
}

#[tokio::test]
async fn two_workers_with_the_same_messages_share_their_steps() {
    twice().everywhere().await.assert_steps();
    twice().sampled(300, 32).await.assert_steps();
}

/// A short lease ends while the step is on its way, and a successor takes over.
#[tokio::test]
async fn short_leases_keep_steps() {
    renewed(queue()).everywhere().await.assert_steps();
    renewed(twice()).everywhere().await.assert_steps();
    renewed(twice()).sampled(300, 33).await.assert_steps();
}

#[tokio::test]
async fn a_fifo_queue_and_a_stream_keep_steps() {
    let story = Story::new(
        |messages| Fifo::boxed(messages, 4),
        [
            message("a1").stepping().group("a"),
            message("b1").stepping().takes(1).group("b"),
            message("a2").stepping().fails(1).group("a"),
            message("a3").group("a"),
        ],
    );
    let story = Story { deliveries: 4, within: Duration::from_secs(92), ..story };
    story.everywhere().await.assert_steps();

    let messages = [message("a").stepping(), message("b").stepping().takes(1), message("c")];
    let story = Story::new(Stream::boxed, messages).waiting();
    let story = Story { deliveries: 9, within: Duration::from_mins(2), ..story };
    story.everywhere().await.assert_steps();
}

#[tokio::test]
async fn steps_of_an_operation_that_commits_its_effects_are_kept_before() {
    let committing = queue().choosing(|policy| policy.mode = Mode::Transactional);
    committing.everywhere().await.assert_exactly_once();
}

#[tokio::test]
async fn steps_end_with_a_permanent_timeout() {
    let story = Story {
        deliveries: 6,
        within: Duration::from_secs(182),
        gives_up: |given_up, timed_out| given_up == timed_out,
        ..Story::new(|messages| Queue::redriving(messages, 6), batch())
    };
    story
        .choosing(|policy| policy.on_timeout = OnTimeout::FailPermanently)
        .everywhere()
        .await
        .assert_steps();
}

/// The checks find a store that loses steps when a key is taken over, when a lease is renewed, and when a key is
/// released; and one that says too early that it has them.
#[tokio::test]
async fn a_store_that_forgets_steps_is_caught() {
    fn forgets(mut write: Write, when: fn(&Write) -> bool) -> Treatment {
        if when(&write)
            && let Some(record) = &mut write.record
        {
            record.steps = None;
        }
        Treatment::Apply(write)
    }
    let takeover = |write| {
        forgets(write, |write| {
            let owner = write.record.as_ref().and_then(|record| record.owner);
            matches!(&write.guard, Guard::Unchanged(seen) if owner.is_some() && seen.owner != owner)
        })
    };
    let release = |write| {
        let gives_up =
            |write: &Write| write.record.as_ref().is_some_and(|record| record.owner.is_none());
        forgets(write, gives_up)
    };
    let early = |write: Write| match (&write.guard, &write.record) {
        (Guard::Unchanged(_), Some(record))
            if record.steps.is_some() && record.status == Status::InProgress =>
        {
            Treatment::Forget
        }
        _ => Treatment::Apply(write),
    };
    for (mutant, said) in [
        (takeover as fn(Write) -> Treatment, "is written without its steps"),
        (release, "is written without its steps"),
        (release, "runs a step again that the store had"),
        (early, "goes on after a step that is not kept"),
    ] {
        let tally = Story { mutant, ..queue() }.everywhere().await;
        let found = |(_, what): &(_, String)| what.contains(said);
        assert!(tally.violations.iter().any(found), "{said}: {tally}");
    }
}
