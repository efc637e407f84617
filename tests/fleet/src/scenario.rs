//! What is simulated: the fleet, its load, its table, and what goes wrong.

use std::{ops::Range, time::Duration};

use crate::{
    random::mix,
    time::{Micros, micros},
};

/// A billion records a day, as records a second.
pub const A_BILLION_A_DAY: f64 = 1e9 / 86_400.0;

/// One simulation. Two runs of the same scenario have the same figures.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Every random choice comes from it.
    pub seed: u64,
    /// The most functions at once: the maximum concurrency of the event source mapping.
    pub functions: usize,
    /// How many records are sent to the queue.
    pub records: u32,
    /// How many of them each second.
    pub rate: f64,
    /// The most records of a batch.
    pub batch: usize,
    /// How long half of the handlers take at most, and how much that varies: see [`Random::around`].
    ///
    /// [`Random::around`]: crate::random::Random::around
    pub handler: (Duration, f64),
    /// The timeout of the function.
    pub timeout: Duration,
    /// The visibility timeout of the queue.
    pub visibility: Duration,
    /// After so many receives a record goes to the dead-letter queue.
    pub max_receives: u8,
    /// The most records of the queue that may be in flight: received, and neither deleted nor visible again.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>
    pub most_in_flight: u32,
    /// How the queue is polled.
    pub pollers: Pollers,
    /// The table.
    pub table: TableSettings,
    /// By how much the clock of each function is wrong at most.
    pub skew: Duration,
    /// The share of receives after which the queue delivers the record once more, up to ten minutes later,
    /// although it was deleted.
    pub redelivered: f64,
    /// The share of records that the producer has sent within the second before, under the same key.
    pub copies: f64,
    /// How many keys are hot, if some are.
    pub hot_keys: u32,
    /// Of so many keys one has a handler that always fails; 0 for none.
    pub poison_every: u32,
    /// Of so many keys one kills each process that works on it; 0 for none.
    pub killer_every: u32,
    /// What goes wrong, and when.
    pub faults: Vec<Fault>,
    /// What is wrong with the system itself, to show that the checks find it.
    pub broken: Option<Broken>,
    /// Whether a process remembers the keys that it saw completed.
    pub remembers: bool,
    /// Prints what happens to this record.
    pub trace: Option<u32>,
}

/// How Lambda polls the queue.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
#[derive(Clone, Copy, Debug)]
pub struct Pollers {
    /// How many batches are processed at once in the beginning.
    pub first: usize,
    /// How many there are at least.
    pub fewest: usize,
    /// How many more there are after each minute, as long as there are messages.
    pub more_per_minute: f64,
}

/// The table.
#[derive(Clone, Copy, Debug)]
pub struct TableSettings {
    /// The write units a second that it can serve from the beginning: its warm throughput.
    pub warm: f64,
    /// The most write units a second to which it grows by itself: the quota of a table.
    pub quota: f64,
    /// The write units a second of a partition, and a third of its read units.
    pub partition: f64,
    /// How long it takes until the table can serve twice its highest traffic so far.
    pub growth: Duration,
    /// The time that half of all requests take at most.
    pub latency: Duration,
}

/// Something that goes wrong for a while.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// When it begins.
    pub from: Duration,
    /// How long it lasts.
    pub lasts: Duration,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The table answers no request: half with an error, half not at all. A third of the writes are applied all
    /// the same.
    Outage,
    /// The table serves a third of the write units that the load needs.
    Throttling,
    /// A fifth of the records that are sent have one of a few keys.
    HotKeys,
    /// Each request takes 700 ms longer, so that some exceed the second after which they are sent again.
    SlowTable,
    /// Of twenty invocations one is killed, at any time.
    Crashes,
    /// What the handlers call does not answer: each takes ten times as long, and fails.
    FailingHandlers,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Outage,
        Self::Throttling,
        Self::HotKeys,
        Self::SlowTable,
        Self::Crashes,
        Self::FailingHandlers,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outage => "outage",
            Self::Throttling => "throttling",
            Self::HotKeys => "hot-keys",
            Self::SlowTable => "slow-table",
            Self::Crashes => "crashes",
            Self::FailingHandlers => "failing-handlers",
        }
    }
}

/// Something that is wrong all the time, and that the checks have to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The store repeats requests without a pause.
    NoPause,
    /// Leases end a minute before the functions believe that they do.
    ShortLeases,
    /// A claim holds its key for a day.
    LongLeases,
    /// Each write is applied, whatever the table holds.
    NoGuards,
    /// The poller deletes the whole batch, whatever the function answers.
    DeletesAll,
}

impl Scenario {
    /// A fleet under this load, with everything else at its default: AWS's defaults, or its advice.
    #[must_use]
    pub fn new(seed: u64, functions: usize, records: u32, rate: f64) -> Self {
        Self {
            seed,
            functions,
            records,
            rate,
            batch: 10,
            handler: (Duration::from_millis(200), 0.5),
            timeout: Duration::from_secs(30),
            visibility: Duration::from_secs(180),
            max_receives: 10,
            most_in_flight: 120_000,
            pollers: Pollers { first: 5, fewest: 5, more_per_minute: 300.0 },
            table: TableSettings {
                warm: 40_000.0,
                quota: 40_000.0,
                partition: 1000.0,
                growth: Duration::from_mins(30),
                latency: Duration::from_millis(4),
            },
            skew: Duration::from_millis(500),
            redelivered: 0.001,
            copies: 0.001,
            hot_keys: 4,
            poison_every: 100_003,
            killer_every: 0,
            faults: Vec::new(),
            broken: None,
            remembers: true,
            trace: None,
        }
    }

    /// A tenth of a fleet that processes a billion records a day: whatever has a number is a tenth of what it is at AWS,
    /// also how fast the pollers grow, and what a partition serves.
    #[must_use]
    pub fn tenth(seed: u64, records: u32) -> Self {
        let mut tenth = Self::new(seed, 100, records, A_BILLION_A_DAY / 10.0);
        // Of five pollers, half of one would be a tenth.
        tenth.pollers = Pollers { first: 1, fewest: 1, more_per_minute: 30.0 };
        tenth.most_in_flight /= 10;
        tenth.table.partition /= 10.0;
        tenth.table.warm /= 10.0;
        tenth.table.quota /= 10.0;
        tenth
    }

    /// 20 functions and 20,000 records, on a table that is as small.
    #[must_use]
    pub fn small(seed: u64) -> Self {
        let mut small = Self::new(seed, 20, 20_000, 55.0);
        small.handler.0 = Duration::from_millis(300);
        small.timeout = Duration::from_secs(10);
        small.visibility = Duration::from_secs(60);
        small.pollers = Pollers { first: 2, fewest: 2, more_per_minute: 20.0 };
        small.most_in_flight = 300;
        small.table.partition = 20.0;
        small.table.warm = 200.0;
        small.table.quota = 400.0;
        small.redelivered = 0.01;
        small.copies = 0.01;
        small.poison_every = 4001;
        small
    }

    /// The same, with this fault.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, from: Duration, lasts: Duration) -> Self {
        self.faults.push(Fault { kind, from, lasts });
        self
    }

    /// When all records have been sent.
    #[must_use]
    pub fn sent(&self) -> Duration {
        Duration::from_secs_f64(f64::from(self.records) / self.rate)
    }

    /// How long records may still be on their way after they have been sent: what comes later is stuck.
    #[must_use]
    pub fn horizon(&self) -> Duration {
        self.sent() + Duration::from_hours(2)
    }

    /// How many records have been sent by then.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    pub fn sent_by(&self, now: Micros) -> u32 {
        ((now as f64 / 1e6 * self.rate) as u32).min(self.records)
    }

    /// Whether this goes wrong now.
    #[must_use]
    pub fn suffers(&self, kind: FaultKind, now: Micros) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind && fault.window().contains(&now))
    }

    /// Whether anything goes wrong now, or has done so while an invocation that ends now was running.
    #[must_use]
    pub fn suffers_any(&self, now: Micros) -> bool {
        let began = now.saturating_sub(micros(self.timeout));
        let windows = self.faults.iter().map(Fault::window);
        windows.into_iter().any(|window| began < window.end && window.start <= now)
    }

    /// The number of the key that a record has. Most have their own.
    #[must_use]
    pub fn key(&self, record: u32) -> u32 {
        let mixed = mix(self.seed ^ (u64::from(record) << 20));
        let sent = self.sent_at(record);
        let hot = self
            .faults
            .iter()
            .find(|fault| fault.kind == FaultKind::HotKeys && fault.window().contains(&sent));
        if let Some(fault) = hot
            && mixed.is_multiple_of(5)
        {
            return self
                .sent_by(fault.window().start)
                .saturating_add((mixed >> 40) as u32 % self.hot_keys);
        }
        let is_copy = (mixed % 1_000_000) as f64 / 1e6 < self.copies;
        match is_copy {
            // Of the last second, so that both may be processed at once.
            true => record.saturating_sub(1 + (mixed >> 40) as u32 % (self.rate as u32).max(1)),
            false => record,
        }
    }

    /// Whether the handler of a key always fails.
    #[must_use]
    pub const fn is_poison(&self, key: u32) -> bool {
        self.poison_every > 0 && key % self.poison_every == self.poison_every / 2
    }

    /// Whether a key kills each process that works on it.
    #[must_use]
    pub const fn is_killer(&self, key: u32) -> bool {
        self.killer_every > 0 && key % self.killer_every == self.killer_every / 3
    }

    fn sent_at(&self, record: u32) -> Micros {
        (f64::from(record) / self.rate * 1e6) as Micros
    }
}

impl Fault {
    /// When it lasts.
    #[must_use]
    pub fn window(&self) -> Range<Micros> {
        micros(self.from)..micros(self.from + self.lasts)
    }
}
