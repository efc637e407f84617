//! Records that will never be processed are put aside, wherever the worker stops: in the handler that fails,
//! in the sink, or between them.

use std::time::Duration;

use crate::{
    message::{Message, message},
    source::{Fifo, Queue, Source, Stream},
    story::Story,
};

/// A permanent failure at the head, whose sink fails this often; another payload under a used key; and
/// the records after them.
fn records(sink_fails: u32) -> [Message; 6] {
    [
        message("a").fails_permanently().aside("a aside", sink_fails).group("g"),
        message("b").fingerprint("1").group("g"),
        message("b").payload("other").fingerprint("2").aside("b aside", 0).group("g"),
        message("c").group("g"),
        message("d").fails_permanently().aside("d aside", 0).group("h"),
        message("e").group("h"),
    ]
}

fn story(source: fn(Vec<Message>) -> Box<dyn Source>, sink_fails: u32) -> Story {
    Story {
        deliveries: 5,
        within: Duration::from_mins(2),
        ..Story::new(source, records(sink_fails))
    }
}

#[tokio::test]
async fn a_shard_continues_after_a_diverted_record() {
    let story = story(Stream::boxed, 1).waiting();
    story.everywhere().await.assert_sound();
    story.in_pairs().await.assert_sound();
    story.sampled(200, 21).await.assert_sound();
}

#[tokio::test]
async fn a_fifo_queue_continues_after_a_diverted_record() {
    let story = story(|messages| Fifo::boxed(messages, 4), 0);
    story.everywhere().await.assert_sound();
    story.sampled(200, 22).await.assert_sound();
}

#[tokio::test]
async fn a_queue_loses_no_record_to_divert() {
    let copies = [
        message("a").fails_permanently().aside("a aside", 1),
        message("a").fails_permanently().aside("another a aside", 0),
        message("b").fails(1).aside("b aside", 0),
        message("c").takes(2),
    ];
    let story =
        Story { deliveries: 4, within: Duration::from_mins(2), ..Story::new(Queue::boxed, copies) };
    story.everywhere().await.assert_sound();
    story.sampled(200, 23).await.assert_sound();
}
