//! Sources that redeliver as those of AWS do: which messages, when, and in which batches.

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
