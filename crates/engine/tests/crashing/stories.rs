//! The stories: what a source delivers, what handlers do, and the policies that users choose.

use std::time::Duration;

use lambda_idempotency_core::policy::{Lease, Mode, OnTimeout};

use crate::{
    message::{Message, message},
    source::{Fifo, Queue, Source, Stream, Twice, Whole},
    story::Story,
    sweep::Tally,
};

/// What handlers do beside their effect, and how it happens.
#[derive(Clone, Copy)]
pub(crate) enum Handlers {
    /// Nothing: an effect is doubled only if a worker stopped between it and its completion.
    Plain,
    /// Each but the first has a step before its effect, and each publishes two messages in order. The step runs once, unless a worker stops
    /// before it is kept. The messages arrive before their record is acknowledged and after its completion, with one id.
    Keeping,
    /// The same, and the effect is committed with the completion: it happens once, wherever a worker stops.
    Transactional,
    /// The effect is committed with the completion and without a claim.
    Optimistic,
}

use Handlers::{Keeping, Optimistic, Plain, Transactional};

impl Handlers {
    pub(crate) fn of(self, mut story: Story) -> Story {
        if matches!(self, Keeping | Transactional) {
            story.publishes = true;
            let without = story.messages[0].label;
            story.messages.iter_mut().for_each(|one| one.has_step = one.label != without);
        }
        story.choosing(|policy| match self {
            Transactional => policy.mode = Mode::Transactional,
            Optimistic => policy.mode = Mode::Optimistic,
            Plain | Keeping => {}
        })
    }

    #[track_caller]
    fn assert(self, tally: &Tally) {
        match self {
            Plain => tally.assert_sound(),
            Keeping => tally.assert_steps(),
            Transactional => tally.assert_exactly_once(),
            Optimistic => tally.assert_once_without_claims(),
        }
    }
}

/// Tells a story with a stop at every place, with so many samples of three stops, and with every pair of them.
async fn tell(story: Story, handlers: Handlers, samples: usize, in_pairs: bool) {
    let story = handlers.of(story);
    handlers.assert(&story.everywhere().await);
    if samples > 0 {
        handlers.assert(&story.sampled(samples, 7).await);
    }
    if in_pairs {
        handlers.assert(&story.in_pairs().await);
    }
}

macro_rules! stories {
    ($($name:ident: $story:expr, $handlers:expr, $samples:expr, $in_pairs:expr;)+) => {$(
        #[tokio::test]
        async fn $name() {
            tell($story, $handlers, $samples, $in_pairs).await;
        }
    )+};
}

const PAIRS: bool = true;
const ONE: bool = false;

stories! {
    a_queue: queue(), Plain, 300, PAIRS;
    a_queue_keeps_steps_and_messages: queue(), Keeping, 300, PAIRS;
    a_queue_has_each_effect_once: queue(), Transactional, 300, PAIRS;
    a_queue_has_each_effect_once_without_claims: queue(), Optimistic, 300, PAIRS;
    two_workers_with_the_same_messages: twice(), Plain, 300, PAIRS;
    two_workers_keep_steps_and_messages: twice(), Keeping, 300, ONE;
    two_workers_have_each_effect_once: twice(), Transactional, 300, PAIRS;
    two_workers_have_each_effect_once_without_claims: twice(), Optimistic, 300, PAIRS;
    short_leases: renewed(twice()), Plain, 200, ONE;
    short_leases_of_one_worker: renewed(Story { source: Queue::boxed, ..twice() }), Plain, 300, ONE;
    short_leases_keep_steps_and_messages: renewed(twice()), Keeping, 300, ONE;
    short_leases_have_each_effect_once: renewed(twice()), Transactional, 300, ONE;
    a_fifo_queue: fifo(), Plain, 300, PAIRS;
    a_fifo_queue_keeps_steps_and_messages: fifo(), Keeping, 200, ONE;
    a_fifo_queue_has_each_effect_once: fifo(), Transactional, 200, PAIRS;
    a_fifo_queue_has_each_effect_once_without_claims: fifo(), Optimistic, 0, PAIRS;
    a_shard_by_partition_key: shard(Stream::boxed, by_key()), Plain, 400, ONE;
    a_shard_in_its_order: shard(Stream::boxed, in_order()), Plain, 200, PAIRS;
    a_shard_that_is_halved_after_a_death: halved(by_key()), Plain, 200, ONE;
    a_shard_in_its_order_that_is_halved: halved(in_order()), Plain, 200, ONE;
    a_shard_keeps_steps_and_messages: long_shard(), Keeping, 0, ONE;
    a_shard_has_each_effect_once: long_shard(), Transactional, 0, ONE;
    a_shard_has_each_effect_once_without_claims: long_shard(), Optimistic, 0, ONE;
    a_shard_that_gives_up: gives_up(), Plain, 0, ONE;
    a_batch_that_is_redelivered_as_a_whole: whole(), Plain, 400, ONE;
    an_asynchronous_invocation_survives_two_deaths: asynchronous(30), Plain, 0, PAIRS;
    a_long_asynchronous_invocation_survives_two_deaths: asynchronous(100), Plain, 0, PAIRS;
    keys_that_fail_permanently_after_failures: fails_at_last(), Plain, 0, PAIRS;
    failures_that_are_permanent: fails(), Plain, 200, ONE;
    timeouts_that_are_permanent: times_out(), Plain, 200, ONE;
    timeouts_that_are_permanent_end_steps: times_out(), Keeping, 0, ONE;
    timeouts_that_are_permanent_have_no_effect: times_out(), Transactional, 0, ONE;
    timeouts_that_are_permanent_have_no_effect_without_claims: times_out(), Optimistic, 0, ONE;
    payloads_that_differ_under_one_key: payloads(), Plain, 0, PAIRS;
}

/// A message that succeeds, one that fails once, a slow one, a copy, another payload under a used key, and one whose effect is
/// refused once, where effects are committed.
fn queue() -> Story {
    let story = Story::new(
        Queue::boxed,
        [
            message("a"),
            message("b").fails(1),
            message("c").takes(2),
            message("a"),
            message("b").payload("another b"),
            message("d").refused(1),
        ],
    );
    // One redelivery after the death, when its lease has ended, and one after the failure.
    Story { deliveries: 2, within: Duration::from_mins(1), ..story }
}

fn twice() -> Story {
    let messages = [
        message("a").takes(8),
        message("b").takes(1).fails(1),
        message("c").fails(1),
        message("a"),
        message("d").refused(1),
    ];
    Story { deliveries: 3, within: Duration::from_secs(92), ..Story::new(Twice::boxed, messages) }
}

/// A lease ends while a write is on its way, and a successor takes over.
fn renewed(story: Story) -> Story {
    story.choosing(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(3) })
}

/// Two groups, both larger than a batch.
fn fifo() -> Story {
    let messages = [
        message("a1").group("a"),
        message("b1").group("b").takes(1),
        message("a2").group("a").fails(1),
        message("b2").group("b"),
        message("a1").group("a"),
        message("a3").group("a"),
        message("b3").group("b"),
    ];
    Story { deliveries: 4, within: Duration::from_secs(92), ..Story::new(Fifo::boxed, messages) }
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
fn in_order() -> [Message; 6] {
    by_key().map(|message| message.group("shard"))
}

/// Retries come at once, so two of them wait for the dead worker's lease.
fn shard(source: fn(Vec<Message>) -> Box<dyn Source>, messages: [Message; 6]) -> Story {
    let story = Story::new(source, messages).waiting();
    Story { deliveries: 4, within: Duration::from_secs(37), ..story }
}

fn halved(messages: [Message; 6]) -> Story {
    Story { deliveries: 7, ..shard(Stream::bisecting, messages) }
}

fn long_shard() -> Story {
    let messages = [message("a"), message("b").takes(1), message("c").refused(1), message("d")];
    let story = Story::new(Stream::boxed, messages).waiting();
    Story { deliveries: 9, within: Duration::from_mins(2), ..story }
}

/// A batch of a stream that keeps failing goes to its on-failure destination; the other records are done.
fn gives_up() -> Story {
    let messages = [message("a"), message("b").takes(1), message("c"), message("d").fails(99)];
    Story {
        deliveries: 9,
        within: Duration::from_secs(37),
        gives_up: |given_up, _| given_up == [3],
        ..Story::new(|messages| Stream::giving_up(messages, 6), messages).waiting()
    }
}

fn whole() -> Story {
    let messages = [
        message("a").group("p0"),
        message("b").group("p1").fails(1),
        message("c").group("p0").takes(1),
        message("d").group("p1"),
        message("e"),
    ];
    let story = Story::new(Whole::polled, messages).waiting();
    Story { deliveries: 4, within: Duration::from_secs(37), ..story }
}

/// There are three attempts in all, so one is left after two deaths. The second death may come while the
/// lease of the first attempt still holds.
fn asynchronous(timeout: u64) -> Story {
    Story {
        timeout: Duration::from_secs(timeout),
        deliveries: 1,
        within: Duration::from_mins(4),
        ..Story::new(Whole::asynchronous, [message("a").takes(3)]).waiting()
    }
}

/// A queue with a dead-letter queue.
fn redriving(
    messages: impl IntoIterator<Item = Message>,
    gives_up: fn(&[usize], &[usize]) -> bool,
) -> Story {
    let story = Story::new(|messages| Queue::redriving(messages, 6), messages);
    Story { deliveries: 6, within: Duration::from_secs(182), gives_up, ..story }
}

/// A key with too many failed attempts fails permanently, and its message goes to the dead-letter queue.
fn fails_at_last() -> Story {
    let messages = [message("a"), message("b").fails(9), message("c").fails(1)];
    redriving(messages, |given_up, _| given_up == [1])
        .choosing(|policy| policy.max_failed_attempts = Some(2))
}

/// Only messages that fail permanently go to the dead-letter queue.
fn fails() -> Story {
    let messages =
        [message("a"), message("b").fails_permanently(), message("c").takes(2), message("b")];
    redriving(messages, |given_up, _| given_up == [1, 3])
}

/// Messages whose handler was stopped at the deadline go to the dead-letter queue. That excludes their effect, and the other
/// way round.
fn times_out() -> Story {
    let messages = [
        message("a"),
        message("b").takes(1),
        message("c").fails(1),
        message("a"),
        message("d").refused(1),
    ];
    redriving(messages, |given_up, timed_out| given_up == timed_out)
        .choosing(|policy| policy.on_timeout = OnTimeout::FailPermanently)
}

/// Of two payloads under one key one is done, and the other one goes to the dead-letter queue.
fn payloads() -> Story {
    let messages = [
        message("a").fingerprint("10 EUR"),
        message("b").fingerprint("5 EUR").fails(1),
        message("a").fingerprint("99 EUR"),
        message("b").fingerprint("5 EUR").payload("another text with the same price"),
    ];
    redriving(messages, |given_up, _| given_up == [0] || given_up == [2])
}
