//! Stories whose handlers publish two messages each, in order: they arrive, wherever a worker stops, before their
//! record is acknowledged and after its completion, each time with the same id.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    outbox::{OutgoingMessage, SendError, Sender},
    policy::{Lease, Mode},
    store::Write,
};

use crate::{
    log::Log,
    message::{Message, message},
    source::{Fifo, Queue, Stream, Twice},
    store::Treatment,
    story::Story,
};

/// The sender of an invocation, which can be dropped before, between and after its messages.
pub(crate) struct Wire(pub(crate) Log);

impl Sender for Wire {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            for message in messages {
                self.0.arrived(message);
                tokio::task::yield_now().await;
            }
            messages.iter().map(|_| Ok(())).collect()
        })
    }
}

/// A message that succeeds, one that fails once, a slow one, and a copy.
fn batch() -> [Message; 4] {
    [message("a"), message("b").fails(1), message("c").takes(2), message("a")]
}

fn queue() -> Story {
    let story = Story::new(Queue::boxed, batch());
    Story { publishes: true, deliveries: 2, within: Duration::from_mins(1), ..story }
}

fn committing(story: Story) -> Story {
    story.choosing(|policy| policy.mode = Mode::Transactional)
}

#[tokio::test]
async fn a_queue_loses_no_message() {
    queue().everywhere().await.assert_sound();
    queue().in_pairs().await.assert_sound();
    queue().sampled(300, 31).await.assert_sound();
}

#[tokio::test]
async fn a_queue_with_transactions_has_each_effect_once_and_its_messages() {
    committing(queue()).everywhere().await.assert_exactly_once();
    committing(queue()).in_pairs().await.assert_exactly_once();
    committing(queue()).sampled(300, 32).await.assert_exactly_once();
}

#[tokio::test]
async fn two_workers_with_the_same_messages_lose_none_of_theirs() {
    let twice = Story { source: Twice::boxed, deliveries: 3, ..queue() };
    let twice = committing(Story { within: Duration::from_secs(92), ..twice });
    twice.everywhere().await.assert_exactly_once_without_delays();
    twice.sampled(300, 33).await.assert_exactly_once();
    let renewed =
        twice.choosing(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(3) });
    renewed.sampled(300, 34).await.assert_exactly_once();
}

#[tokio::test]
async fn a_fifo_queue_loses_no_message_and_keeps_its_order() {
    let group = |message: Message, group| message.group(group);
    let story = Story::new(
        |messages| Fifo::boxed(messages, 4),
        [
            group(message("a1"), "a"),
            group(message("b1").takes(1), "b"),
            group(message("a2").fails(1), "a"),
            group(message("b2"), "b"),
        ],
    );
    let within = Duration::from_secs(92);
    let story = committing(Story { publishes: true, deliveries: 4, within, ..story });
    story.everywhere().await.assert_exactly_once();
    story.sampled(200, 35).await.assert_exactly_once();
}

#[tokio::test]
async fn a_stream_loses_no_message() {
    let messages = [message("a"), message("b").takes(1), message("c").fails(1), message("d")];
    let story = Story::new(Stream::boxed, messages).waiting();
    let story = Story { deliveries: 9, within: Duration::from_mins(2), ..story };
    committing(Story { publishes: true, ..story }).everywhere().await.assert_exactly_once();
}

/// The checks find a store that loses the messages of a completion.
#[tokio::test]
async fn a_store_that_drops_messages_is_caught() {
    let drops = |mut write: Write| {
        if let Some(record) = &mut write.record {
            record.outbox = None;
        }
        Treatment::Apply(write)
    };
    let tally = Story { mutant: drops, ..queue() }.everywhere().await;
    let lost = |(_, what): &(_, String)| what.contains("acknowledged before its messages arrived");
    assert!(tally.violations.iter().any(lost), "{tally}");
}
