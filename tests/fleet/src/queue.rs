//! A standard queue of SQS with a dead-letter queue.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
    time::Duration,
};

use crate::{
    random::{Random, mix},
    scenario::Scenario,
    time::{Micros, micros},
};

/// The latest that a record which was deleted is delivered once more.
const LATEST: Duration = Duration::from_mins(10);

/// The queue.
pub struct Queue {
    scenario: Arc<Scenario>,
    random: Random,
    /// The next record that was never received.
    fresh: u32,
    /// Records that were received before and can be received again.
    again: VecDeque<u32>,
    /// Records that are invisible, by when that ends.
    invisible: VecDeque<(Micros, u32)>,
    /// Deliveries of records that may have been deleted.
    extra: BinaryHeap<Reverse<(Micros, u32)>>,
    receives: Vec<u8>,
    states: Vec<State>,
    dead: Vec<u32>,
    deleted: u32,
    /// How many records are invisible and not deleted.
    in_flight: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    Deleted,
    Dead,
}

/// A record that was received.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its number.
    pub record: u32,
    /// How often it was received, this time included.
    pub receives: u8,
    /// Whether the queue delivered it although it may have been deleted.
    pub is_extra: bool,
}

impl Queue {
    /// An empty queue, to which the records of the scenario are sent in time.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>) -> Self {
        let records = scenario.records as usize;
        Self {
            random: Random::new(mix(scenario.seed ^ 0x0515)),
            scenario,
            fresh: 0,
            again: VecDeque::new(),
            invisible: VecDeque::new(),
            extra: BinaryHeap::new(),
            receives: vec![0; records],
            states: vec![State::Waits; records],
            dead: Vec::new(),
            deleted: 0,
            in_flight: 0,
        }
    }

    /// Receives up to `most` records, which are invisible from now on.
    pub fn receive(&mut self, now: Micros, most: usize) -> Vec<Message> {
        self.reappear(now);
        let sent = self.scenario.sent_by(now);
        let mut messages = Vec::new();
        while messages.len() < most {
            if let Some(Reverse((due, record))) = self.extra.peek().copied()
                && due <= now
            {
                self.extra.pop();
                let receives = self.receives[record as usize].saturating_add(1);
                messages.push(Message { record, receives, is_extra: true });
                continue;
            }
            // The quota of a queue. Long polls, which Lambda uses, get no error then.
            if self.in_flight >= self.scenario.most_in_flight {
                break;
            }
            // The queue keeps no order.
            let prefers_fresh = self.random.chance(0.5);
            let (has_fresh, has_again) = (self.fresh < sent, !self.again.is_empty());
            let record = if has_fresh && (prefers_fresh || !has_again) {
                self.fresh += 1;
                self.fresh - 1
            } else if let Some(record) = self.again.pop_front() {
                record
            } else {
                break;
            };
            if let Some(message) = self.deliver(record, now) {
                messages.push(message);
            }
        }
        messages
    }

    /// Deletes a record.
    pub fn delete(&mut self, message: Message) -> bool {
        // The visibility timeout is longer than the function's, so the record is still invisible.
        let state = &mut self.states[message.record as usize];
        let is_new = !message.is_extra && *state == State::Waits;
        if is_new {
            *state = State::Deleted;
            self.deleted += 1;
            self.in_flight -= 1;
        }
        is_new
    }

    /// How many records can be received.
    #[must_use]
    pub fn waiting(&self, now: Micros) -> u64 {
        u64::from(self.scenario.sent_by(now) - self.fresh) + self.again.len() as u64
    }

    /// How many records were sent by then, and are neither deleted nor in the dead-letter queue.
    #[must_use]
    pub fn backlog(&self, now: Micros) -> u64 {
        let settled = self.scenario.records - self.unsettled();
        u64::from(self.scenario.sent_by(now).saturating_sub(settled))
    }

    /// Whether nothing will be received any more.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.unsettled() == 0 && self.extra.is_empty()
    }

    /// Whether a record was deleted.
    #[must_use]
    pub fn is_deleted(&self, record: u32) -> bool {
        self.states[record as usize] == State::Deleted
    }

    /// How many records are neither deleted nor in the dead-letter queue.
    #[must_use]
    pub fn unsettled(&self) -> u32 {
        self.scenario.records - self.deleted - u32::try_from(self.dead.len()).unwrap_or(u32::MAX)
    }

    /// What is in the dead-letter queue.
    #[must_use]
    pub fn dead(&self) -> &[u32] {
        &self.dead
    }

    /// The most receives of a record that was deleted.
    #[must_use]
    pub fn most_receives(&self) -> u8 {
        let deleted = self.states.iter().zip(&self.receives);
        deleted.filter(|(state, _)| **state == State::Deleted).map(|(_, n)| *n).max().unwrap_or(0)
    }

    /// How many records that were deleted had been received so often: once, twice, ...
    #[must_use]
    pub fn receives(&self) -> Vec<u32> {
        let mut counts = vec![0; usize::from(self.most_receives())];
        for (state, receives) in self.states.iter().zip(&self.receives) {
            if *state == State::Deleted && *receives > 0 {
                counts[usize::from(*receives) - 1] += 1;
            }
        }
        counts
    }

    fn deliver(&mut self, record: u32, now: Micros) -> Option<Message> {
        let receives = &mut self.receives[record as usize];
        if *receives >= self.scenario.max_receives {
            self.states[record as usize] = State::Dead;
            self.dead.push(record);
            return None;
        }
        *receives += 1;
        let receives = *receives;
        self.invisible.push_back((now + micros(self.scenario.visibility), record));
        self.in_flight += 1;
        if self.random.chance(self.scenario.redelivered) {
            let later = micros(self.random.up_to(LATEST));
            self.extra.push(Reverse((now + later, record)));
        }
        Some(Message { record, receives, is_extra: false })
    }

    /// Records that were not deleted in time can be received again.
    fn reappear(&mut self, now: Micros) {
        while let Some((due, record)) = self.invisible.front().copied()
            && due <= now
        {
            self.invisible.pop_front();
            if self.states[record as usize] == State::Waits {
                self.in_flight -= 1;
                self.again.push_back(record);
            }
        }
    }
}
