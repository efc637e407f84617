//! What a state of the world is.

use crate::{
    packed::{Cell, Fence, Payload, Token},
    request::Request,
};

/// Everything there is at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The true time, in ticks. Every clock reads between this and the clock skew more.
    pub(crate) time: u8,
    pub(crate) faults: Faults,
    /// In an ordered source: the key at which the next delivery of the batch begins.
    pub(crate) checkpoint: usize,
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
    /// What each function that uses Powertools is doing about this key.
    pub(crate) strangers: Vec<Option<Stranger>>,
    /// Writes whose senders no longer wait for them: lost, late, or copies of what was sent again.
    pub(crate) strays: Vec<Request>,
    pub(crate) source: Source,
    /// The payloads for which a handler ever returned Ok.
    pub(crate) effect: Payloads,
    /// The payloads that the key was ever COMPLETED with.
    pub(crate) completed: Payloads,
    /// The fence of the last handler that was started; only where that is looked at.
    pub(crate) fence: Fence,
    /// Until when the effect of a handler that was dropped may be on its way; 0 is never.
    pub(crate) lingering: u8,
    /// How often its handler died because of another key's; only where keys can be poison.
    pub(crate) harmed: u8,
    /// Whether a record in progress was swept while copies of writes were on their way: what was
    /// known of the key went with it.
    pub(crate) forgotten: bool,
    /// The rules that the last step broke; nothing happens after that.
    pub(crate) flaws: Flaws,
}

/// Where the deliveries of a key are; those in flight are with the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// By payload.
    pub(crate) queued: [u8; 2],
    pub(crate) acknowledged: u8,
    /// Returned as a permanent failure, so that a dead-letter queue gets it.
    pub(crate) failed_permanently: u8,
}

/// A worker and a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Call {
    pub(crate) token: Token,
    /// The end of the lease as the claim asked for it; of somebody else's, while it waits.
    pub(crate) lease: u8,
    /// The record as this worker wrote or found it.
    pub(crate) held: Cell,
    pub(crate) job: Job,
    /// The write it waits for.
    pub(crate) request: Option<Request>,
    /// The answer on its way back, if answers travel.
    pub(crate) answer: Option<Answer>,
    pub(crate) payload: Payload,
    /// The payload of another delivery of the key in the same batch.
    pub(crate) follower: Option<Payload>,
}

/// What a worker is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Job {
    Claiming,
    /// The key is busy: waits for the end of the lease, or a result.
    Waiting,
    /// The claim was granted, the handler is not started. Only where workers undo.
    Granted,
    /// The claim was granted: the handler runs, or is about to.
    Running,
    /// The handler runs, and a renewal was sent.
    Renewing,
    /// The handler is done, or will not run.
    Settling,
}

/// A function that uses Powertools, whose handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stranger {
    pub(crate) lease: u8,
}

/// What the store said.
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
    FenceFell,
    FenceFellAfterRemoval,
    AnsweredByAnother,
    WaitedInVain,
    OrderBroken,
    StartedExhausted,
    StartedBesideDropped,
    OverwrittenByStranger,
}

/// A set of [`Flaw`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flaws(u16);

impl Flaws {
    pub(crate) fn add(&mut self, flaw: Flaw) {
        self.0 |= 1 << flaw as u16;
    }

    pub(crate) fn any(self) -> bool {
        self.0 != 0
    }

    pub(crate) fn contains(self, flaw: Flaw) -> bool {
        self.0 & (1 << flaw as u16) != 0
    }
}

impl Call {
    /// Whether its handler runs, as far as its worker has not noticed that it should not.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.job, Job::Running | Job::Renewing)
    }

    /// Whether an earlier owner of its key disappeared: that may be the key's fault.
    pub(crate) fn is_quarantined(&self) -> bool {
        self.held.lost_attempts() > 0
    }

    /// Whether the worker, by some clock within the allowance, believes that it holds the key.
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

    /// The same of those that use Powertools.
    pub(crate) fn believing_strangers(&self, time: u8) -> impl Iterator<Item = &Stranger> {
        self.strangers.iter().flatten().filter(move |stranger| time <= stranger.lease)
    }
}
