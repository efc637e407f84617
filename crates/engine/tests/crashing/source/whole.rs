//! Sources that retry only whole batches: SNS and other asynchronous invocations (two retries, after one
//! and two minutes), Amazon MQ, Kafka without partial responses (until the batch is done).
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html>

use std::time::Duration;

use lambda_idempotency_core::clock::Timestamp;

use super::{Answer, Gone, Received, Source, single};
use crate::message::Message;

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
