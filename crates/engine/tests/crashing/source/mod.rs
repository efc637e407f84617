//! Sources that redeliver as AWS's do, reduced to what matters here: what comes again, when, and
//! with what.

mod fifo;
mod queue;
mod stream;
mod twice;
mod whole;

use lambda_idempotency_core::clock::Timestamp;

pub(crate) use fifo::Fifo;
pub(crate) use queue::Queue;
pub(crate) use stream::Stream;
pub(crate) use twice::Twice;
pub(crate) use whole::Whole;

use crate::message::Message;

/// What a source delivers next.
pub(crate) struct Received {
    /// When, at the earliest.
    pub(crate) at: Timestamp,
    /// The batches, each for a worker of its own, side by side.
    pub(crate) batches: Vec<Vec<Message>>,
}

/// What an invocation answered.
pub(crate) enum Answer {
    /// For each message of the batch: whether it may be forgotten.
    Acknowledged(Vec<bool>),
    /// Nothing: it died.
    Died,
}

/// Why a source has forgotten a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Acknowledged,
    DeadLettered,
}

pub(crate) trait Source {
    /// The next delivery; `None` if nothing is left.
    fn receive(&mut self, now: Timestamp) -> Option<Received>;

    /// What came of the last delivery, batch by batch. Returns what the source forgets now.
    fn answered(&mut self, answers: Vec<Answer>, now: Timestamp) -> Vec<(Message, Gone)>;
}

/// The answer of a delivery to one worker.
fn single(answers: Vec<Answer>) -> Answer {
    answers.into_iter().next().unwrap_or(Answer::Died)
}

impl Answer {
    /// Whether message `at` of the batch may be forgotten.
    fn acknowledges(&self, at: usize) -> bool {
        matches!(self, Self::Acknowledged(acknowledged) if acknowledged.get(at) == Some(&true))
    }
}
