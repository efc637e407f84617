//! A shard of a stream: the first returned record is the checkpoint, and all records from there on are
//! redelivered at once, also those that are done. After a death the whole batch is redelivered, or its
//! halves one after the other.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html>

use std::{collections::VecDeque, time::Duration};

use lambda_idempotency_core::clock::Timestamp;

use super::{Answer, Gone, Received, Source, single};
use crate::message::Message;

const BACKOFF: Duration = Duration::from_millis(100);

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
