//! Kinesis and DynamoDB streams: a shard, whose batch is redelivered from its checkpoint.

use std::time::Duration;

use crate::{
    message::{Message, message},
    source::{Source, Stream},
    story::Story,
};

fn stream(source: fn(Vec<Message>) -> Box<dyn Source>, messages: [Message; 6]) -> Story {
    Story {
        // Retries come at once, so two of them wait for the dead worker's lease.
        deliveries: 4,
        within: Duration::from_secs(37),
        ..Story::new(source, messages).waiting()
    }
}

/// Records of two partition keys, which run concurrently.
fn by_key() -> [Message; 6] {
    [
        message("a1").group("a"),
        message("b1").group("b").takes(1),
        message("a2").group("a").fails(1),
        message("b2").group("b"),
        message("a1").group("a"),
        message("b3").group("b").fails(1),
    ]
}

/// The same records as one group, which run one after the other.
fn whole() -> [Message; 6] {
    by_key().map(|message| message.group("shard"))
}

#[tokio::test]
async fn a_shard_by_partition_key() {
    let story = stream(Stream::boxed, by_key());
    story.everywhere().await.assert_sound();
    story.sampled(400, 5).await.assert_sound();
}

#[tokio::test]
async fn a_shard_in_its_order() {
    let story = stream(Stream::boxed, whole());
    story.everywhere().await.assert_sound();
    story.in_pairs().await.assert_sound();
    story.sampled(200, 6).await.assert_sound();
}

#[tokio::test]
async fn a_shard_that_is_halved_after_a_death() {
    for messages in [by_key(), whole()] {
        let story = Story { deliveries: 7, ..stream(Stream::bisecting, messages) };
        story.everywhere().await.assert_sound();
        story.sampled(200, 7).await.assert_sound();
    }
}
