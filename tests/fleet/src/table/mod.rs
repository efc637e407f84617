//! A DynamoDB table, as its clients see it.

mod items;
mod partitions;
mod reply;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lambda_idempotency_core::{
    record::{IdempotencyRecord, Status},
    store::Write,
};
use lambda_idempotency_keys::Key;

pub use self::store::TableStore;
use self::{items::Items, partitions::Partitions, reply::Reply};
use crate::{
    figures::Figures,
    random::{Random, mix},
    scenario::{Broken, FaultKind, Scenario},
    time::Timeline,
};
use std::time::Duration;

/// The share of writes that an outage applies without an answer.
const APPLIED_IN_AN_OUTAGE: f64 = 1.0 / 3.0;
/// How much longer a request takes while the table is slow, and how much that varies.
const SLOW: (Duration, Duration) = (Duration::from_millis(700), Duration::from_millis(500));
/// The write units of a new record.
const UNITS: f64 = 2.0;
const A_MINUTE: Duration = Duration::from_mins(1);
const A_DAY: Duration = Duration::from_hours(24);

/// The table. Clones are the same table.
#[derive(Clone)]
pub struct Table(Arc<Inner>);

struct Inner {
    scenario: Arc<Scenario>,
    timeline: Timeline,
    figures: Figures,
    state: Mutex<State>,
}

struct State {
    items: Items,
    partitions: Partitions,
    random: Random,
}

/// What became of a write.
pub(crate) enum Written {
    Yes,
    /// Its guard did not hold; this is there.
    No(Option<Box<IdempotencyRecord>>),
    /// Its guard did not hold. A batch does not say what is there.
    Unread,
    Throttled,
}

/// What became of a read.
pub(crate) enum Found {
    Item(Option<Box<IdempotencyRecord>>),
    Throttled,
}

/// The request failed.
pub(crate) struct ServerError;

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(scenario: Arc<Scenario>, timeline: Timeline, figures: Figures) -> Self {
        let state = Mutex::new(State {
            items: Items::for_keys(scenario.records),
            partitions: Partitions::new(scenario.table),
            random: Random::new(mix(scenario.seed)),
        });
        Self(Arc::new(Inner { scenario, timeline, figures, state }))
    }

    /// Whether this key is completed.
    #[must_use]
    pub fn is_completed(&self, key: u32) -> bool {
        self.state().items.is_completed(key)
    }

    /// The write units a second that it can serve.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.state().partitions.capacity()
    }

    /// Sends writes in one request.
    pub(crate) fn write(&self, writes: Vec<Write>) -> Reply<Result<Vec<Written>, ServerError>> {
        self.send(move |table| table.apply(&writes))
    }

    /// Sends reads in one request.
    pub(crate) fn read(&self, keys: Vec<Key>) -> Reply<Result<Vec<Found>, ServerError>> {
        self.send(move |table| table.look(&keys))
    }

    /// A request that arrives, is answered unless the answer is lost, and is carried out although its caller may
    /// be gone.
    fn send<T: Send + 'static>(
        &self,
        request: impl FnOnce(&Self) -> Option<T> + Send + 'static,
    ) -> Reply<T> {
        let reply = Reply::default();
        let (there, back) = self.ways();
        let (table, answer) = (self.clone(), reply.clone());
        self.0.timeline.after(there, move || {
            let answered = request(&table);
            if let Some(answered) = answered {
                table.0.timeline.after(back, move || answer.give(answered));
            }
        });
        reply
    }

    fn ways(&self) -> (Duration, Duration) {
        let Inner { scenario, timeline, .. } = &*self.0;
        let random = &mut self.state().random;
        let median = scenario.table.latency / 2;
        let (there, back) = (random.around(median, 0.4), random.around(median, 0.4));
        match scenario.suffers(FaultKind::SlowTable, timeline.now()) {
            true => (there, back + SLOW.0 + random.up_to(SLOW.1)),
            false => (there, back),
        }
    }

    fn apply(&self, writes: &[Write]) -> Option<Result<Vec<Written>, ServerError>> {
        let Inner { scenario, timeline, figures, .. } = &*self.0;
        let mut state = self.state();
        let State { items, partitions, random } = &mut *state;
        let now = timeline.now();
        let is_out = scenario.suffers(FaultKind::Outage, now);
        if is_out && !random.chance(APPLIED_IN_AN_OUTAGE) {
            figures.requested(now, writes.len(), 0);
            return random.chance(0.5).then_some(Err(ServerError));
        }
        let share = match scenario.suffers(FaultKind::Throttling, now) {
            true => (scenario.rate * UNITS / 3.0 / partitions.capacity()).min(1.0),
            false => 1.0,
        };
        let mut throttled = 0;
        let answers = writes
            .iter()
            .map(|write| {
                let key = number(&write.key);
                if !partitions.write(scattered(key), share, now) {
                    throttled += 1;
                    return Written::Throttled;
                }
                if scenario.broken == Some(Broken::NoGuards) || items.holds(key, write) {
                    items.put(key, write.record.clone().map(|record| self.kept(record)));
                    return Written::Yes;
                }
                match writes {
                    [_] => Written::No(items.get(key).map(Box::new)),
                    _ => Written::Unread,
                }
            })
            .collect();
        figures.requested(now, writes.len(), throttled);
        if is_out {
            return random.chance(0.5).then_some(Err(ServerError));
        }
        Some(Ok(answers))
    }

    fn look(&self, keys: &[Key]) -> Option<Result<Vec<Found>, ServerError>> {
        let Inner { scenario, timeline, figures, .. } = &*self.0;
        let mut state = self.state();
        let State { items, partitions, random } = &mut *state;
        let now = timeline.now();
        figures.read(now, keys.len());
        if scenario.suffers(FaultKind::Outage, now) {
            return random.chance(0.5).then_some(Err(ServerError));
        }
        let answers =
            keys.iter().map(number).map(|key| match partitions.read(scattered(key), now) {
                true => Found::Item(items.get(key).map(Box::new)),
                false => Found::Throttled,
            });
        Some(Ok(answers.collect()))
    }

    /// The record as this table keeps it, which may be broken on purpose.
    fn kept(&self, mut record: IdempotencyRecord) -> IdempotencyRecord {
        let is_claim = record.status == Status::InProgress && record.owner.is_some();
        let Some(until) = record.lease_until.filter(|_| is_claim) else { return record };
        match self.0.scenario.broken {
            Some(Broken::ShortLeases) => record.lease_until = Some(until.minus(A_MINUTE)),
            Some(Broken::LongLeases) => {
                record.lease_until = Some(until.plus(A_DAY));
                record.expires_at = until.plus(A_DAY).ceil_to_second();
            }
            _ => {}
        }
        record
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key with this number.
#[must_use]
pub fn key(number: u32) -> Key {
    Key::from_text(format!("fleet#{number}"))
}

fn number(key: &Key) -> u32 {
    key.hash().parse().expect("the key of a number")
}

/// Where a key is among all keys.
const fn scattered(key: u32) -> u64 {
    mix(key as u64 + 0x5eed)
}
