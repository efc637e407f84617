//! An SQS FIFO queue: while a message is invisible, no message of its group is delivered.
//!
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html>

use lambda_idempotency_core::clock::Timestamp;

use super::{Answer, Gone, Received, Source, queue::VISIBILITY, single};
use crate::message::Message;

pub(crate) struct Fifo {
    /// In the order in which they were sent, each with the instant from which it is visible.
    messages: Vec<(Message, Timestamp)>,
    /// The ids of the last delivery.
    out: Vec<usize>,
    batch: usize,
    max_receives: u32,
}

impl Fifo {
    pub(crate) fn boxed(messages: Vec<Message>, batch: usize) -> Box<dyn Source> {
        Self::redriving(messages, batch, u32::MAX)
    }

    /// With a dead-letter queue, after which the rest of a group is delivered.
    pub(crate) fn redriving(
        messages: Vec<Message>,
        batch: usize,
        max_receives: u32,
    ) -> Box<dyn Source> {
        let messages = messages.into_iter().map(|message| (message, Timestamp::EPOCH)).collect();
        Box::new(Self { messages, out: Vec::new(), batch, max_receives })
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
        self.out = visible.take(self.batch).map(|(message, _)| message.id).collect();
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
            } else if message.receives >= self.max_receives {
                gone.push((message, Gone::DeadLettered));
            } else {
                continue;
            }
            self.messages.retain(|(message, _)| message.id != id);
        }
        gone
    }
}
