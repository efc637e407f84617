//! What a state of the world is.

use crate::packed::{Cell, Request, Token};

/// Everything there is at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The true time, in ticks. Every clock reads between this and the skew allowance more.
    pub(crate) time: u8,
    pub(crate) faults: Faults,
    pub(crate) keys: Vec<KeyWorld>,
}

/// How many faults may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// A worker dies and forgets everything; what it sent may still land.
    pub(crate) crashes: u8,
    /// A write gets no answer: it lands at any later time, or never.
    pub(crate) timeouts: u8,
    /// A handler reports failure.
    pub(crate) errors: u8,
}

/// One key: its record, its deliveries, who works on it and what is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyWorld {
    pub(crate) store: Option<Cell>,
    /// What each worker is doing about this key.
    pub(crate) calls: Vec<Option<Call>>,
    /// Writes whose senders no longer wait for them: lost, late, or copies of what was sent again.
    pub(crate) strays: Vec<Request>,
    pub(crate) source: Source,
    /// Whether a handler ever returned Ok.
    pub(crate) effect: bool,
    /// Whether the key was ever COMPLETED.
    pub(crate) completed: bool,
    /// Whether a record in progress was swept while copies of writes were on their way: what was
    /// known of the key went with it.
    pub(crate) forgotten: bool,
    /// The rules that the last step broke; nothing happens after that.
    pub(crate) flaws: Flaws,
}

/// Where the deliveries of a key are; those in flight are with the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) queued: u8,
    pub(crate) acknowledged: u8,
    /// Returned as a remembered failure, so that a dead-letter queue gets it.
    pub(crate) parked: u8,
}

/// A worker and a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Call {
    pub(crate) token: Token,
    /// The end of the lease as the claim asked for it.
    pub(crate) lease: u8,
    /// The record as this worker wrote or found it.
    pub(crate) held: Cell,
    pub(crate) job: Job,
    /// The write it waits for.
    pub(crate) request: Option<Request>,
    /// The answer on its way back, if answers travel.
    pub(crate) answer: Option<Answer>,
}

/// What a worker is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Job {
    Claiming,
    /// The claim was granted: the handler runs, or is about to.
    Running,
    /// The handler runs, and a renewal was sent.
    Renewing,
    /// The handler is done, or will not run.
    Settling,
}

/// What the store said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    Written,
    Found(Option<Cell>),
}

/// A rule that a single step can break; the others are read off a state. See
/// [`properties`](crate::properties).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    StartedWithoutKey,
    NotFenced,
    NotFinal,
    AcknowledgedTooSoon,
    OwnWorkNotRecognised,
    ToldOvertakenWhileOwner,
    SweptUnderHolder,
    HistoryLost,
}

/// A set of [`Flaw`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flaws(u8);

impl Flaws {
    pub(crate) fn any(self) -> bool {
        self.0 != 0
    }

    pub(crate) fn contains(self, flaw: Flaw) -> bool {
        self.0 & (1 << flaw as u8) != 0
    }
}

impl Call {
    /// Whether the worker, by some clock within the allowance, believes that it holds the key.
    pub(crate) fn believes(&self, time: u8) -> bool {
        matches!(self.job, Job::Running | Job::Renewing) && time <= self.held.lease()
    }
}

impl KeyWorld {
    pub(crate) fn new(workers: usize, deliveries: u8) -> Self {
        Self {
            store: None,
            calls: vec![None; workers],
            strays: Vec::new(),
            source: Source { queued: deliveries, ..Source::default() },
            effect: false,
            completed: false,
            forgotten: false,
            flaws: Flaws::default(),
        }
    }

    pub(crate) fn working(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().flatten()
    }

    pub(crate) fn believers(&self, time: u8) -> impl Iterator<Item = &Call> {
        self.working().filter(move |call| call.believes(time))
    }

    /// Notes that a rule was broken.
    pub(crate) fn blame(&mut self, flaw: Flaw) {
        self.flaws.0 |= 1 << flaw as u8;
    }
}
