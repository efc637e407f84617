//! The configuration of a world.

use crate::{
    state::{Faults, Flaws, KeyWorld, Payloads, Source},
    witness::{Event, Witness},
};

/// By how much two clocks may differ, in ticks. A clock may step within the skew at any time, so each
/// reading may fall anywhere in it, which covers every way of stepping.
pub(crate) const SKEW: u8 = 1;

/// One configuration.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) workers: usize,
    /// Deliveries of the key; no more than this can be in flight at once.
    pub(crate) deliveries: u8,
    /// Deliveries of the key that have another payload.
    pub(crate) others: u8,
    /// The last tick.
    pub(crate) end: u8,
    /// The length of a claim's lease.
    pub(crate) lease: u8,
    /// The length of a renewed lease; 0: there are no renewals.
    pub(crate) renewal: u8,
    /// Whether a handler is stopped when its lease has expired by its worker's clock.
    pub(crate) stops: bool,
    /// Whether a worker waits for a busy key.
    pub(crate) waits: bool,
    /// Whether claims carry a fingerprint of the payload.
    pub(crate) fingerprints: bool,
    /// Whether each payload belongs to another application.
    pub(crate) applications: bool,
    /// Whether a handler may be dropped at its deadline, at any time.
    pub(crate) drops: bool,
    pub(crate) retention: u8,
    pub(crate) faults: Faults,
    /// Handlers may fail permanently.
    pub(crate) fails_permanently: bool,
    /// Workers may undo their claims.
    pub(crate) undo: bool,
    /// Workers may release a key after a completion got no answer.
    pub(crate) regret: bool,
    pub(crate) network: Network,
    /// Whether times that are stored and decide nothing come from any clock within the clock skew;
    /// otherwise they come from the slowest one. Times that decide something always come from any clock.
    pub(crate) skewed_stamps: bool,
    /// Whether fences are part of the state. No decision depends on them.
    pub(crate) fences: bool,
    /// Whether a fence must be higher than those of handlers that ran before the record was removed.
    pub(crate) fences_outlive_records: bool,
    /// Functions that use Powertools and share the table.
    pub(crate) powertools: Powertools,
    /// The properties that are known not to hold, and are not checked.
    pub(crate) lost: &'static [&'static str],
    /// The events that must occur.
    pub(crate) expect: &'static [Event],
    pub(crate) witness: Witness,
}

/// How long writes and answers are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// Only writes that race with others stay in flight: takeovers, renewals, completions that found no
    /// record, and writes without an answer. The others arrive when they are sent: a slow claim is the
    /// same as one that is sent later, and a slow settlement the same as a slower handler.
    Prompt,
    /// Every write is in flight for any time; its answer arrives at once.
    Slow,
    /// Every write and every answer is in flight for any time.
    SlowBothWays,
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
    /// The smallest useful configuration.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            workers: 2,
            deliveries: 2,
            others: 0,
            end: 5,
            lease: 2,
            renewal: 0,
            stops: false,
            waits: false,
            fingerprints: false,
            applications: false,
            drops: false,
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

    /// With `MODEL=large`, the same configuration with this end and these faults.
    pub(crate) fn or_large(mut self, end: u8, faults: Faults) -> Self {
        if Self::is_large() {
            (self.end, self.faults) = (end, faults);
        }
        self
    }

    /// Whether `MODEL=large` is set.
    pub(crate) fn is_large() -> bool {
        std::env::var_os("MODEL").is_some_and(|size| size == "large")
    }

    /// A key before the first step.
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
            forgotten: false,
            flaws: Flaws::default(),
        }
    }
}
