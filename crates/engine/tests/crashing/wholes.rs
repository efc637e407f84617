//! Sources that know all or nothing.

use std::time::Duration;

use crate::{message::message, source::Whole, story::Story};

#[tokio::test]
async fn a_batch_that_comes_again_as_a_whole() {
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

/// Three tries in all, so that two deaths leave one: and the second may come while the lease of the
/// first still stands.
#[tokio::test]
async fn an_asynchronous_invocation_survives_as_many_deaths_as_it_has_retries() {
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
