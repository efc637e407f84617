//! What users can choose: short leases, permanent failures, fingerprints, giving up.

use std::time::Duration;

use lambda_idempotency_core::policy::{Lease, OnPermanentFailure, OnTimeout};

use crate::{
    message::message,
    source::{Fifo, Queue, Stream, Twice},
    story::Story,
};

/// Handlers that outlive their leases many times, with workers side by side.
#[tokio::test]
async fn leases_that_are_renewed() {
    let story = Story {
        deliveries: 3,
        within: Duration::from_secs(92),
        ..Story::new(
            Twice::boxed,
            [message("a").takes(8), message("b").takes(5).fails(1), message("c"), message("a")],
        )
        .choosing(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(3) })
    };
    story.everywhere().await.assert_sound();
    story.sampled(200, 9).await.assert_sound();
    let alone = Story { source: Queue::boxed, ..story };
    alone.everywhere().await.assert_sound();
    alone.sampled(300, 11).await.assert_sound();
}

/// A key that fails too often is put aside, and what is behind it in its group goes on.
#[tokio::test]
async fn keys_that_are_parked_after_failures() {
    let story = Story {
        deliveries: 4,
        within: Duration::from_secs(122),
        ..Story::new(
            |messages| Fifo::boxed(messages, 10),
            [
                message("a1").group("a"),
                message("a2").group("a").fails(9),
                message("a3").group("a"),
                message("b1").group("b").fails(1),
            ],
        )
        .choosing(|policy| {
            policy.max_failed_attempts = Some(2);
            policy.on_permanent_failure = OnPermanentFailure::Acknowledge;
        })
    };
    story.everywhere().await.assert_sound();
    story.in_pairs().await.assert_sound();
}

/// What fails permanently goes to the dead-letter queue, and nothing else does.
#[tokio::test]
async fn failures_that_are_remembered() {
    let story = Story {
        deliveries: 6,
        within: Duration::from_secs(182),
        gives_up: |given_up, _| given_up == [1, 3],
        ..Story::new(
            |messages| Queue::redriving(messages, 6),
            [message("a"), message("b").fails_for_good(), message("c").takes(2), message("b")],
        )
    };
    story.everywhere().await.assert_sound();
    story.sampled(200, 12).await.assert_sound();
}

/// A key whose handler was stopped at the deadline is for a person to look at.
#[tokio::test]
async fn timeouts_that_are_parked() {
    let story = Story {
        deliveries: 6,
        within: Duration::from_secs(182),
        gives_up: |given_up, timed_out| given_up == timed_out,
        ..Story::new(
            |messages| Queue::redriving(messages, 6),
            [message("a"), message("b").takes(1), message("c").fails(1), message("a")],
        )
        .choosing(|policy| policy.on_timeout = OnTimeout::FailPermanently)
    };
    story.everywhere().await.assert_sound();
    story.sampled(200, 10).await.assert_sound();
}

/// Of two payloads under one key one is done, and the other one comes to the dead-letter queue.
#[tokio::test]
async fn payloads_that_do_not_agree() {
    let story = Story {
        deliveries: 6,
        within: Duration::from_secs(182),
        gives_up: |given_up, _| given_up == [0] || given_up == [2],
        ..Story::new(
            |messages| Queue::redriving(messages, 6),
            [
                message("a").fingerprint("10 EUR"),
                message("b").fingerprint("5 EUR").fails(1),
                message("a").fingerprint("99 EUR"),
                message("b").fingerprint("5 EUR").payload("the same, in other words"),
            ],
        )
    };
    story.everywhere().await.assert_sound();
    story.in_pairs().await.assert_sound();
}

/// A batch of a stream that keeps failing goes to its destination; the rest is done.
#[tokio::test]
async fn a_stream_that_gives_up() {
    let story = Story {
        deliveries: 9,
        within: Duration::from_secs(37),
        gives_up: |given_up, _| given_up == [3],
        ..Story::new(
            |messages| Stream::giving_up(messages, 6),
            [message("a"), message("b").takes(1), message("c"), message("d").fails(99)],
        )
        .waiting()
    };
    story.everywhere().await.assert_sound();
}
