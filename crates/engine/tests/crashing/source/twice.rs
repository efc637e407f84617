//! A queue that delivers every message to two workers at once, as SQS sometimes does. A message that one
//! of them acknowledges is deleted for both.

use lambda_idempotency_core::clock::Timestamp;

use super::{Answer, Gone, Queue, Received, Source};
use crate::message::Message;

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
