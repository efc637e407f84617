//! The size of a world, and how it is explored.

use crate::{
    state::{Faults, Flaws, KeyWorld, Payloads, Source},
    witness::{Event, Witness},
};

/// By how much two clocks may differ, in ticks. A clock may step within it at any time, so the
/// model lets each single reading fall anywhere in it: that covers every way of stepping.
pub(crate) const SKEW: u8 = 1;

/// One configuration.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) workers: usize,
    pub(crate) keys: usize,
    /// Of each key; no more than this can be in flight at once.
    pub(crate) deliveries: u8,
    /// Deliveries of each key that have another payload.
    pub(crate) others: u8,
    /// The last tick.
    pub(crate) end: u8,
    /// How long a claim asks for.
    pub(crate) lease: u8,
    /// How long a renewal asks for; 0: there are none.
    pub(crate) renewal: u8,
    /// How long after its claim a lease can end at most, however often it is renewed; 0: any time.
    pub(crate) ceiling: u8,
    /// Whether a handler is stopped when its lease has run out by its worker's clock.
    pub(crate) stops: bool,
    /// Whether a worker waits for a busy key.
    pub(crate) waits: bool,
    /// Whether a worker takes two deliveries of a key in one batch, if there are two.
    pub(crate) pairs: bool,
    /// Whether claims carry a fingerprint of the payload.
    pub(crate) fingerprints: bool,
    /// Whether each payload is the work of an application of its own.
    pub(crate) applications: bool,
    /// Whether the keys are one order group of one batch: each is taken after the one before it.
    pub(crate) ordered: bool,
    /// Whether workers die of the first key's handler only, and of nothing else.
    pub(crate) poison: bool,
    /// What becomes of handlers at the deadline.
    pub(crate) deadline: Deadline,
    /// After how many failures a key fails permanently; 0: never.
    pub(crate) max_failed_attempts: u8,
    pub(crate) retention: u8,
    pub(crate) faults: Faults,
    /// Handlers may fail permanently.
    pub(crate) fails_permanently: bool,
    /// Workers may undo what they claimed.
    pub(crate) undo: bool,
    /// Workers may release a key after a completion got no answer.
    pub(crate) regret: bool,
    pub(crate) network: Network,
    /// Whether times that are only written down come from any clock within the allowance, too;
    /// otherwise from the slowest. Times that decide something always come from any.
    pub(crate) skewed_stamps: bool,
    /// Whether fences are part of the state. No decision depends on them.
    pub(crate) fences: bool,
    /// Whether a fence must be higher than those of handlers from before the record was removed.
    pub(crate) fences_outlive_records: bool,
    /// Functions that use Powertools and share the table.
    pub(crate) powertools: Powertools,
    /// The properties that are known not to hold: they are not checked.
    pub(crate) lost: &'static [&'static str],
    /// What must have happened.
    pub(crate) expect: &'static [Event],
    pub(crate) witness: Witness,
}

/// How long messages take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// Only what races with others is in flight for a while: takeovers, renewals, completions that
    /// found nothing, and whatever got no answer. The others land as they are sent: a claim that
    /// takes long is a claim that is sent later, and a settlement that takes long is a handler
    /// that does.
    Prompt,
    /// Every write is in flight for as long as it likes; its answer is not.
    Slow,
    /// Every write, and every answer.
    SlowBothWays,
}

/// What becomes of a handler that still runs shortly before its invocation's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// There is none.
    Never,
    /// It is dropped at any time, and its lease stands.
    Return,
    /// It is dropped at any time, and its key fails permanently.
    FailPermanently,
}

/// Functions that use Powertools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Powertools {
    pub(crate) functions: usize,
    /// Whether one can outlive the lease that it claimed; if not, it is killed when that ends.
    pub(crate) outlive: bool,
    /// Whether their clocks can be ahead of the others', as the workers' clocks can.
    pub(crate) ahead: bool,
}

impl Setup {
    /// The smallest world worth looking at.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            workers: 2,
            keys: 1,
            deliveries: 2,
            others: 0,
            end: 5,
            lease: 2,
            renewal: 0,
            ceiling: 0,
            stops: false,
            waits: false,
            pairs: false,
            fingerprints: false,
            applications: false,
            ordered: false,
            poison: false,
            deadline: Deadline::Never,
            max_failed_attempts: 0,
            retention: 3,
            faults: Faults::default(),
            fails_permanently: false,
            undo: false,
            regret: false,
            network: Network::Prompt,
            skewed_stamps: false,
            fences: false,
            fences_outlive_records: false,
            powertools: Powertools { functions: 0, outlive: false, ahead: false },
            lost: &[],
            expect: &[],
            witness: Witness::default(),
        }
    }

    /// The same world with more in it, if `MODEL=large` asks for that.
    pub(crate) fn or_large(mut self, end: u8, faults: Faults) -> Self {
        if Self::is_large() {
            (self.end, self.faults) = (end, faults);
        }
        self
    }

    /// Whether `MODEL=large` asks for larger worlds.
    pub(crate) fn is_large() -> bool {
        std::env::var_os("MODEL").is_some_and(|size| size == "large")
    }

    /// A key before anything has happened to it.
    pub(crate) fn key(&self) -> KeyWorld {
        KeyWorld {
            store: None,
            calls: vec![None; self.workers],
            strangers: vec![None; self.powertools.functions],
            strays: Vec::new(),
            source: Source { queued: [self.deliveries, self.others], ..Source::default() },
            effect: Payloads::default(),
            completed: Payloads::default(),
            fence: 0,
            lingering: 0,
            harmed: 0,
            forgotten: false,
            flaws: Flaws::default(),
        }
    }
}
