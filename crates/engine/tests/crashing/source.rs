//! Sources that redeliver as those of AWS do: which messages, when, and in which batches.

use std::{collections::VecDeque, time::Duration};

use lambda_idempotency_core::clock::Timestamp;

use crate::message::Message;

/// The next delivery of a source.
pub(crate) struct Received {
    /// The earliest instant of the delivery.
    pub(crate) at: Timestamp,
    /// The batches, one for each of several concurrent workers.
    pub(crate) batches: Vec<Vec<Message>>,
}

/// The response of an invocation.
pub(crate) enum Answer {
    /// For each message of the batch: whether it is acknowledged.
    Acknowledged(Vec<bool>),
    /// The invocation died without a response.
    Died,
}

/// Why a source no longer delivers a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Acknowledged,
    DeadLettered,
}

pub(crate) trait Source {
    /// The next delivery; `None` if no message is left.
    fn receive(&mut self, now: Timestamp) -> Option<Received>;

    /// Gives the source the responses to the last delivery, one for each batch. Returns the messages that
    /// it will not deliver again.
    fn answered(&mut self, answers: Vec<Answer>, now: Timestamp) -> Vec<(Message, Gone)>;
}

/// The response to a delivery with one batch.
fn single(answers: Vec<Answer>) -> Answer {
    answers.into_iter().next().unwrap_or(Answer::Died)
}

impl Answer {
    /// Whether message `at` of the batch is acknowledged.
    fn acknowledges(&self, at: usize) -> bool {
        matches!(self, Self::Acknowledged(acknowledged) if acknowledged.get(at) == Some(&true))
    }
}

/// The shortest visibility timeout that AWS accepts: the function's timeout.
const VISIBILITY: Duration = Duration::from_secs(30);

/// An SQS standard queue with partial responses: messages that were not acknowledged are redelivered when
/// their visibility timeout ends. After a death these are all messages of the batch.
///
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>
pub(crate) struct Queue {
    messages: Vec<Message>,
    visible: Timestamp,
    max_receives: u32,
}

impl Queue {
    pub(crate) fn boxed(messages: Vec<Message>) -> Box<dyn Source> {
        Box::new(Self { messages, visible: Timestamp::EPOCH, max_receives: u32::MAX })
    }

    /// With a dead-letter queue.
    pub(crate) fn redriving(messages: Vec<Message>, max_receives: u32) -> Box<dyn Source> {
        Box::new(Self { messages, visible: Timestamp::EPOCH, max_receives })
    }
}

impl Source for Queue {
    fn receive(&mut self, now: Timestamp) -> Option<Received> {
        if self.messages.is_empty() {
            return None;
        }
        let at = now.max(self.visible);
        self.visible = at.plus(VISIBILITY);
        for message in &mut self.messages {
            message.receives += 1;
        }
        Some(Received { at, batches: vec![self.messages.clone()] })
    }

    fn answered(&mut self, answers: Vec<Answer>, _: Timestamp) -> Vec<(Message, Gone)> {
        let answer = single(answers);
        let mut gone = Vec::new();
        for (at, message) in std::mem::take(&mut self.messages).into_iter().enumerate() {
            if answer.acknowledges(at) {
                gone.push((message, Gone::Acknowledged));
            } else if message.receives >= self.max_receives {
                gone.push((message, Gone::DeadLettered));
            } else {
                self.messages.push(message);
            }
        }
        gone
    }
}

/// The size of its batches.
const BATCH: usize = 4;

/// An SQS FIFO queue: while a message is invisible, no message of its group is delivered.
///
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html>
pub(crate) struct Fifo {
    /// In the order in which they were sent, each with the instant from which it is visible.
    messages: Vec<(Message, Timestamp)>,
    /// The ids of the last delivery.
    out: Vec<usize>,
}

impl Fifo {
    pub(crate) fn boxed(messages: Vec<Message>) -> Box<dyn Source> {
        let messages = messages.into_iter().map(|message| (message, Timestamp::EPOCH)).collect();
        Box::new(Self { messages, out: Vec::new() })
    }

    /// The instant from which a message can be received: no message of its group is invisible then.
    fn visible(&self, of: &Message) -> Timestamp {
        let group = self.messages.iter().filter(|(other, _)| other.group == of.group);
        group.map(|(_, visible)| *visible).max().unwrap_or_default()
    }
}

impl Source for Fifo {
    fn receive(&mut self, now: Timestamp) -> Option<Received> {
        let earliest = self.messages.iter().map(|(message, _)| self.visible(message)).min()?;
        let at = now.max(earliest);
        let visible = self.messages.iter().filter(|(message, _)| self.visible(message) <= at);
        self.out = visible.take(BATCH).map(|(message, _)| message.id).collect();
        let mut batch = Vec::new();
        for (message, visible) in &mut self.messages {
            if self.out.contains(&message.id) {
                message.receives += 1;
                *visible = at.plus(VISIBILITY);
                batch.push(*message);
            }
        }
        Some(Received { at, batches: vec![batch] })
    }

    fn answered(&mut self, answers: Vec<Answer>, _: Timestamp) -> Vec<(Message, Gone)> {
        let answer = single(answers);
        let mut gone = Vec::new();
        for (at, id) in std::mem::take(&mut self.out).into_iter().enumerate() {
            let found = self.messages.iter().find(|(message, _)| message.id == id);
            let Some((message, _)) = found.copied() else { continue };
            if answer.acknowledges(at) {
                gone.push((message, Gone::Acknowledged));
                self.messages.retain(|(message, _)| message.id != id);
            }
        }
        gone
    }
}

/// A queue that delivers every message to two workers at once, as SQS sometimes does. A message that one
/// of them acknowledges is deleted for both.
pub(crate) struct Twice {
    queue: Box<dyn Source>,
}

impl Twice {
    pub(crate) fn boxed(messages: Vec<Message>) -> Box<dyn Source> {
        Box::new(Self { queue: Queue::boxed(messages) })
    }
}

impl Source for Twice {
    fn receive(&mut self, now: Timestamp) -> Option<Received> {
        let mut received = self.queue.receive(now)?;
        // The second worker gets the messages in reverse order, so that they do not proceed in lockstep.
        let mut copy = received.batches.concat();
        copy.reverse();
        received.batches.push(copy);
        Some(received)
    }

    fn answered(&mut self, answers: Vec<Answer>, now: Timestamp) -> Vec<(Message, Gone)> {
        let [first, second] = &answers[..] else { return Vec::new() };
        let known = answers.iter().find_map(|answer| match answer {
            Answer::Acknowledged(acknowledged) => Some(acknowledged.len()),
            Answer::Died => None,
        });
        let Some(len) = known else { return self.queue.answered(vec![Answer::Died], now) };
        let either = |at| first.acknowledges(at) || second.acknowledges(len - 1 - at);
        let merged = Answer::Acknowledged((0..len).map(either).collect());
        self.queue.answered(vec![merged], now)
    }
}

const BACKOFF: Duration = Duration::from_millis(100);

/// A shard of a stream: the first returned record is the checkpoint, and all records from there on are
/// redelivered at once, also those that are done. After a death the whole batch is redelivered, or its
/// halves one after the other.
///
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html>
pub(crate) struct Stream {
    /// Each with the number of its deliveries.
    batches: VecDeque<(Vec<Message>, u32)>,
    bisects: bool,
    max_tries: u32,
    again: Timestamp,
}

impl Stream {
    pub(crate) fn boxed(messages: Vec<Message>) -> Box<dyn Source> {
        Self::with(messages, false, u32::MAX)
    }

    /// A shard that halves its batch after a death.
    pub(crate) fn bisecting(messages: Vec<Message>) -> Box<dyn Source> {
        Self::with(messages, true, u32::MAX)
    }

    /// A shard that sends a batch to an on-failure destination after this many deliveries.
    pub(crate) fn giving_up(messages: Vec<Message>, max_tries: u32) -> Box<dyn Source> {
        Self::with(messages, true, max_tries)
    }

    fn with(messages: Vec<Message>, bisects: bool, max_tries: u32) -> Box<dyn Source> {
        let batches = VecDeque::from([(messages, 0)]);
        Box::new(Self { batches, bisects, max_tries, again: Timestamp::EPOCH })
    }
}

impl Source for Stream {
    fn receive(&mut self, now: Timestamp) -> Option<Received> {
        let (batch, tries) = self.batches.front_mut()?;
        *tries += 1;
        for message in batch.iter_mut() {
            message.receives += 1;
        }
        Some(Received { at: now.max(self.again), batches: vec![batch.clone()] })
    }

    fn answered(&mut self, answers: Vec<Answer>, now: Timestamp) -> Vec<(Message, Gone)> {
        let answer = single(answers);
        let Some((mut batch, tries)) = self.batches.pop_front() else { return Vec::new() };
        let done = (0..batch.len()).take_while(|at| answer.acknowledges(*at)).count();
        let mut rest = batch.split_off(done);
        let mut gone: Vec<_> = batch.into_iter().map(|m| (m, Gone::Acknowledged)).collect();
        if rest.is_empty() {
            return gone;
        }
        self.again = now.plus(BACKOFF);
        let died = matches!(answer, Answer::Died);
        if self.bisects && died && rest.len() > 1 {
            // Halving does not count as a delivery.
            let second = rest.split_off(rest.len() / 2);
            self.batches.push_front((second, tries - 1));
            self.batches.push_front((rest, tries - 1));
        } else if tries >= self.max_tries {
            gone.extend(rest.into_iter().map(|message| (message, Gone::DeadLettered)));
        } else {
            self.batches.push_front((rest, tries));
        }
        gone
    }
}

/// Sources that retry only whole batches: SNS and other asynchronous invocations (two retries, after one
/// and two minutes), Amazon MQ, Kafka without partial responses (until the batch is done).
///
/// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html>
pub(crate) struct Whole {
    batch: Vec<Message>,
    tries: u32,
    max_tries: u32,
    pause: Duration,
    again: Timestamp,
}

impl Whole {
    /// A source that retries at once and without a limit.
    pub(crate) fn polled(batch: Vec<Message>) -> Box<dyn Source> {
        Self::with(batch, u32::MAX, Duration::ZERO)
    }

    /// A source that delivers three times, with one and two minutes in between.
    pub(crate) fn asynchronous(batch: Vec<Message>) -> Box<dyn Source> {
        Self::with(batch, 3, Duration::from_mins(1))
    }

    fn with(batch: Vec<Message>, max_tries: u32, pause: Duration) -> Box<dyn Source> {
        Box::new(Self { batch, tries: 0, max_tries, pause, again: Timestamp::EPOCH })
    }
}

impl Source for Whole {
    fn receive(&mut self, now: Timestamp) -> Option<Received> {
        if self.batch.is_empty() {
            return None;
        }
        self.tries += 1;
        for message in &mut self.batch {
            message.receives += 1;
        }
        Some(Received { at: now.max(self.again), batches: vec![self.batch.clone()] })
    }

    fn answered(&mut self, answers: Vec<Answer>, now: Timestamp) -> Vec<(Message, Gone)> {
        let answer = single(answers);
        let gone = if (0..self.batch.len()).all(|at| answer.acknowledges(at)) {
            Gone::Acknowledged
        } else if self.tries >= self.max_tries {
            Gone::DeadLettered
        } else {
            self.again = now.plus(self.pause * self.tries);
            return Vec::new();
        };
        self.batch.drain(..).map(|message| (message, gone)).collect()
    }
}
