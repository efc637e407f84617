//! A state of the world.

use crate::{
    packed::{Cell, Fence, Payload, Token},
    request::Request,
};

pub(crate) use crate::properties::{Flaw, Flaws};

/// The whole world at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The true time, in ticks. Every clock reads between this and the clock skew more.
    pub(crate) time: u8,
    pub(crate) faults: Faults,
    pub(crate) key: KeyWorld,
}

/// How many faults may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// A worker dies and loses its state; writes that it sent may still be applied.
    pub(crate) crashes: u8,
    /// A write gets no answer: it is applied at any later time, or never.
    pub(crate) timeouts: u8,
    /// A handler reports failure.
    pub(crate) errors: u8,
}

/// One key: its record, its deliveries, the workers that handle it and the writes in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyWorld {
    pub(crate) store: Option<Cell>,
    /// What each worker does with this key.
    pub(crate) calls: Vec<Option<Call>>,
    /// What each function that uses Powertools does with this key.
    pub(crate) strangers: Vec<Option<Stranger>>,
    /// Writes whose senders no longer wait for them: lost or late ones, and copies of repeated ones.
    pub(crate) strays: Vec<Request>,
    pub(crate) source: Source,
    /// The payloads for which a handler ever returned Ok.
    pub(crate) effect: Payloads,
    /// The payloads that the key was ever completed with.
    pub(crate) completed: Payloads,
    /// The fence of the last handler that was started, if the configuration checks it.
    pub(crate) fence: Fence,
    /// Until when the effect of a dropped handler may still happen; 0 means that there is none.
    pub(crate) lingering: u8,
    /// Whether a record in progress was swept while copies of writes were in flight: the counts of
    /// attempts were lost with it.
    pub(crate) forgotten: bool,
    /// The rules that the last step broke; nothing happens after that.
    pub(crate) flaws: Flaws,
}

/// Where the deliveries of a key are, except those that a worker handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// By payload.
    pub(crate) queued: [u8; 2],
    pub(crate) acknowledged: u8,
    /// Returned as a permanent failure, so that a dead-letter queue gets it.
    pub(crate) failed_permanently: u8,
}

/// A worker's handling of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Call {
    pub(crate) token: Token,
    /// The end of the lease that the claim asked for; while the worker waits, of the other owner's lease.
    pub(crate) lease: u8,
    /// The record as this worker wrote or found it.
    pub(crate) held: Cell,
    pub(crate) job: Job,
    /// The write it waits for.
    pub(crate) request: Option<Request>,
    /// The answer in flight, if answers are slow.
    pub(crate) answer: Option<Answer>,
    pub(crate) payload: Payload,
}

/// A worker's current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Job {
    Claiming,
    /// The key is busy: the worker waits for the end of the lease, or a result.
    Waiting,
    /// The claim was granted, and the handler is not started. Only in worlds with undo.
    Granted,
    /// The claim was granted: the handler runs, or is about to run.
    Running,
    /// The handler runs, and a renewal was sent.
    Renewing,
    /// The handler has ended, or will not run.
    Settling,
}

/// A function that uses Powertools, whose handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stranger {
    pub(crate) lease: u8,
}

/// The store's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    Written,
    Found(Option<Cell>),
}

/// A set of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Payloads(u8);

impl Payloads {
    pub(crate) fn add(&mut self, payload: Payload) {
        self.0 |= 1 << payload;
    }

    pub(crate) fn contains(self, payload: Payload) -> bool {
        self.0 & (1 << payload) != 0
    }

    pub(crate) fn any(self) -> bool {
        self.0 != 0
    }
}

impl World {
    pub(crate) const fn flaws(&self) -> Flaws {
        self.key.flaws
    }
}

impl Call {
    /// Whether its handler runs, even if it should have been stopped.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.job, Job::Running | Job::Renewing)
    }

    /// Whether the worker, by some clock within the clock skew, believes that it holds the key.
    pub(crate) fn believes(&self, time: u8) -> bool {
        (self.runs() || self.job == Job::Granted) && time <= self.held.lease()
    }
}

impl KeyWorld {
    pub(crate) fn working(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().flatten()
    }

    pub(crate) fn believers(&self, time: u8) -> impl Iterator<Item = &Call> {
        self.working().filter(move |call| call.believes(time))
    }

    /// The functions that use Powertools and whose lease holds.
    pub(crate) fn believing_strangers(&self, time: u8) -> impl Iterator<Item = &Stranger> {
        self.strangers.iter().flatten().filter(move |stranger| time <= stranger.lease)
    }
}
