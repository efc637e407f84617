//! SQS: standard queues, FIFO queues, and messages delivered twice at once.

use std::time::Duration;

use crate::{
    message::message,
    source::{Fifo, Queue, Twice},
    story::Story,
};

/// A message that succeeds, one that fails once, a slow one, a copy, and another payload under a used key.
fn queue() -> Story {
    Story {
        // One redelivery after the death, when its lease has ended, and one after the failure.
        deliveries: 2,
        within: Duration::from_mins(1),
        ..Story::new(
            Queue::boxed,
            [
                message("a"),
                message("b").fails(1),
                message("c").takes(2),
                message("a"),
                message("b").payload("another b"),
            ],
        )
    }
}

/// Two groups, both larger than a batch.
fn fifo() -> Story {
    Story {
        deliveries: 4,
        within: Duration::from_secs(92),
        ..Story::new(
            |messages| Fifo::boxed(messages, 4),
            [
                message("a1").group("a"),
                message("b1").group("b").takes(1),
                message("a2").group("a").fails(1),
                message("b2").group("b"),
                message("a1").group("a"),
                message("a3").group("a"),
                message("b3").group("b"),
            ],
        )
    }
}

fn twice() -> Story {
    Story {
        deliveries: 3,
        within: Duration::from_secs(92),
        ..Story::new(
            Twice::boxed,
            [message("a"), message("b").takes(1), message("c").fails(1), message("a")],
        )
    }
}

#[tokio::test]
async fn a_queue_loses_nothing_wherever_a_worker_stops() {
    queue().everywhere().await.assert_sound();
    queue().in_pairs().await.assert_sound();
    queue().sampled(300, 1).await.assert_sound();
}

#[tokio::test]
async fn a_fifo_queue_keeps_its_order_wherever_a_worker_stops() {
    fifo().everywhere().await.assert_sound();
    fifo().in_pairs().await.assert_sound();
    fifo().sampled(300, 2).await.assert_sound();
}

#[tokio::test]
async fn two_workers_with_the_same_messages_at_once() {
    twice().everywhere().await.assert_sound();
    twice().in_pairs().await.assert_sound();
    twice().sampled(300, 4).await.assert_sound();
}
