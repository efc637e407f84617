//! An SQS standard queue with partial responses: messages that were not acknowledged are redelivered when
//! their visibility timeout ends. After a death these are all messages of the batch.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

use std::time::Duration;

use lambda_idempotency_core::clock::Timestamp;

use super::{Answer, Gone, Received, Source, single};
use crate::message::Message;

/// The shortest visibility timeout that AWS accepts: the function's timeout.
pub(crate) const VISIBILITY: Duration = Duration::from_secs(30);

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
