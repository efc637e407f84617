//! Stories with the policies that users choose: short leases, permanent failures, fingerprints, and
//! sources that give up.

use std::time::Duration;

use lambda_idempotency_core::policy::{Lease, OnTimeout};

use crate::{
    message::message,
    source::{Queue, Stream, Twice},
    story::Story,
};

/// Handlers that run for several leases, with concurrent workers.
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

/// A key with too many failed attempts fails permanently, and its message goes to the dead-letter queue.
#[tokio::test]
async fn keys_that_fail_permanently_after_failures() {
    let story = Story {
        deliveries: 6,
        within: Duration::from_secs(182),
        gives_up: |given_up, _| given_up == [1],
        ..Story::new(
            |messages| Queue::redriving(messages, 6),
            [message("a"), message("b").fails(9), message("c").fails(1)],
        )
        .choosing(|policy| policy.max_failed_attempts = Some(2))
    };
    story.everywhere().await.assert_sound();
    story.in_pairs().await.assert_sound();
}

/// Only messages that fail permanently go to the dead-letter queue.
#[tokio::test]
async fn failures_that_are_permanent() {
    let story = Story {
        deliveries: 6,
        within: Duration::from_secs(182),
        gives_up: |given_up, _| given_up == [1, 3],
        ..Story::new(
            |messages| Queue::redriving(messages, 6),
            [message("a"), message("b").fails_permanently(), message("c").takes(2), message("b")],
        )
    };
    story.everywhere().await.assert_sound();
    story.sampled(200, 12).await.assert_sound();
}

/// Messages whose handler was stopped at the deadline go to the dead-letter queue.
#[tokio::test]
async fn timeouts_that_are_permanent() {
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

/// Of two payloads under one key one is done, and the other one goes to the dead-letter queue.
#[tokio::test]
async fn payloads_that_differ_under_one_key() {
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
                message("b").fingerprint("5 EUR").payload("another text with the same price"),
            ],
        )
    };
    story.everywhere().await.assert_sound();
    story.in_pairs().await.assert_sound();
}

/// A batch of a stream that keeps failing goes to its on-failure destination; the other records are done.
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
