//! Sources that retry only whole batches.

use std::time::Duration;

use crate::{message::message, source::Whole, story::Story};

#[tokio::test]
async fn a_batch_that_is_redelivered_as_a_whole() {
    let story = Story {
        deliveries: 4,
        within: Duration::from_secs(37),
        ..Story::new(
            Whole::polled,
            [
                message("a").group("p0"),
                message("b").group("p1").fails(1),
                message("c").group("p0").takes(1),
                message("d").group("p1"),
                message("e"),
            ],
        )
        .waiting()
    };
    story.everywhere().await.assert_sound();
    story.sampled(400, 8).await.assert_sound();
}

/// There are three attempts in all, so one is left after two deaths. The second death may come while the
/// lease of the first attempt still holds.
#[tokio::test]
async fn an_asynchronous_invocation_survives_two_deaths() {
    for timeout in [30, 100] {
        let story = Story {
            timeout: Duration::from_secs(timeout),
            deliveries: 1,
            within: Duration::from_mins(4),
            ..Story::new(Whole::asynchronous, [message("a").takes(3)]).waiting()
        };
        story.everywhere().await.assert_sound();
        story.in_pairs().await.assert_sound();
    }
}
