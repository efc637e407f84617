//! The sources of a run: sends the messages of the schedule and receives them in batches.

use std::time::{Duration, Instant};

use lambda_idempotency_local::{
    AsyncEvents, Batch, Disposition, InvocationResult, Poller, Queue, Shards, Source, SqsConfig,
    StreamConfig,
};

use crate::{
    kinds::Origin,
    schedule::{Message, Schedule},
    settings::Settings,
    template::shard,
};

/// How many messages are in the queues at a time, visible or not.
const WINDOW: usize = 2000;
/// How often a message of an order that fails permanently is received.
const DOOMED_RECEIVES: u32 = 3;
/// How soon a batch of a stream is read again.
const READ_AGAIN: Duration = Duration::from_millis(200);
/// How many records an invocation gets of a stream.
const BATCH: usize = 10;
/// An event that fails is tried again until it succeeds. Lambda would give it up after the third attempt.
const RETRIES: usize = 10_000;

pub(crate) struct Queues<'a> {
    schedule: &'a Schedule,
    /// One for orders that can be placed, without a limit of receives, and one for those that cannot. Only a queue has the
    /// second.
    sources: Vec<Sending>,
    /// How many messages of the schedule are sent.
    sent: usize,
    /// Which queue is asked next.
    turn: usize,
}

/// A source that messages are sent to.
enum Sending {
    Queue(Queue),
    Stream(Shards),
    Events(AsyncEvents),
}

pub(crate) struct Received {
    pub(crate) batch: Batch,
    pub(crate) line: Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Orders,
    /// Orders that cannot be placed.
    Doomed,
}

impl Line {
    const ALL: [Self; 2] = [Self::Orders, Self::Doomed];
}

impl Sending {
    fn left(&self) -> usize {
        match self {
            Self::Queue(queue) => queue.left(),
            Self::Stream(shards) => shards.left(),
            Self::Events(events) => events.left(),
        }
    }

    fn poller(&mut self) -> &mut dyn Poller {
        match self {
            Self::Queue(queue) => queue,
            Self::Stream(shards) => shards,
            Self::Events(events) => events,
        }
    }
}

impl<'a> Queues<'a> {
    pub(crate) fn new(settings: &Settings, schedule: &'a Schedule) -> Self {
        let queue = |max_receive_count| {
            let visibility = Some(settings.visibility);
            let config = SqsConfig { visibility, max_receive_count, ..SqsConfig::default() };
            Sending::Queue(Queue::new(config, settings.timeout))
        };
        let stream = |source| {
            let config = StreamConfig {
                batch_size: BATCH,
                max_retries: u32::MAX,
                bisect: true,
                retry_delay: READ_AGAIN,
                ..StreamConfig::default()
            };
            vec![Sending::Stream(Shards::new(source, config, Vec::new(), Instant::now()))]
        };
        let events = |source| {
            let delays = vec![settings.visibility; RETRIES];
            vec![Sending::Events(AsyncEvents::new(source, delays))]
        };
        let sources = match schedule.origin() {
            Origin::Sqs | Origin::SqsFifo => vec![queue(u32::MAX), queue(DOOMED_RECEIVES)],
            Origin::Kinesis => stream(Source::Kinesis),
            Origin::DynamoDb => stream(Source::DynamoDb),
            Origin::Sns => events(Source::Sns),
            Origin::EventBridge => events(Source::EventBridge),
        };
        Self { schedule, sources, sent: 0, turn: 0 }
    }

    /// How many messages are neither acknowledged nor dead-lettered, sent or not.
    pub(crate) fn left(&self) -> usize {
        self.queued() + self.schedule.messages.len().saturating_sub(self.sent)
    }

    fn queued(&self) -> usize {
        self.sources.iter().map(Sending::left).sum()
    }

    /// Sends what fits into the window.
    pub(crate) fn feed(&mut self) {
        let schedule = self.schedule;
        while self.queued() < WINDOW
            && let Some(message) = schedule.messages.get(self.sent)
        {
            self.sent += 1;
            self.send(message);
        }
    }

    pub(crate) fn send(&mut self, message: &Message) {
        let order = self.schedule.orders.get(message.order);
        let doomed = order.is_some_and(|order| order.is_doomed());
        let (record, now) = (self.schedule.delivered(message), Instant::now());
        let line = if doomed { Line::Doomed } else { Line::Orders };
        match self.sources.get_mut(line as usize) {
            Some(Sending::Queue(queue)) => queue.send(record, now),
            Some(Sending::Stream(shards)) => {
                shards.push(&shard(self.schedule.group(message.order)), record, now);
            }
            Some(Sending::Events(events)) => events.send(record, now),
            None => {}
        }
    }

    /// Receives a batch from the queues in turn.
    pub(crate) fn receive(&mut self) -> Option<Received> {
        for _ in 0..self.sources.len() {
            let which = self.turn % self.sources.len();
            self.turn += 1;
            let source = self.sources.get_mut(which)?.poller();
            if let Some(batch) = source.receive(Instant::now()) {
                let line = Line::ALL.get(which).copied().unwrap_or(Line::Orders);
                return Some(Received { batch, line });
            }
        }
        None
    }

    /// Ends a batch by the answer of its invocation; returns what became of each message.
    pub(crate) fn dispose(
        &mut self,
        received: &Received,
        answer: &InvocationResult,
    ) -> Vec<Disposition> {
        let source = self.sources.get_mut(received.line as usize);
        source.map_or_else(Vec::new, |source| {
            source.poller().dispose(&received.batch, answer, Instant::now())
        })
    }
}
