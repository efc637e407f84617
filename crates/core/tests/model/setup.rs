//! The size of a world, and how it is explored.

use crate::{
    state::Faults,
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
    /// The last tick.
    pub(crate) end: u8,
    /// How long a claim asks for.
    pub(crate) lease: u8,
    /// How long a renewal asks for; 0: there are none.
    pub(crate) renewal: u8,
    pub(crate) retention: u8,
    pub(crate) faults: Faults,
    /// Handlers may fail for good.
    pub(crate) remember: bool,
    /// Workers may put back what they claimed.
    pub(crate) put_back: bool,
    /// Workers may release a key after a completion got no answer.
    pub(crate) regret: bool,
    pub(crate) network: Network,
    /// Whether times that are only written down come from any clock within the allowance, too;
    /// otherwise from the slowest. Times that decide something always come from any.
    pub(crate) skewed_stamps: bool,
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

impl Setup {
    /// The smallest world worth looking at.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            workers: 2,
            keys: 1,
            deliveries: 2,
            end: 5,
            lease: 2,
            renewal: 0,
            retention: 3,
            faults: Faults::default(),
            remember: false,
            put_back: false,
            regret: false,
            network: Network::Prompt,
            skewed_stamps: false,
            expect: &[],
            witness: Witness::default(),
        }
    }

    /// The same world with more in it, if `MODEL=large` asks for that.
    pub(crate) fn or_large(mut self, end: u8, faults: Faults) -> Self {
        if std::env::var_os("MODEL").is_some_and(|size| size == "large") {
            (self.end, self.faults) = (end, faults);
        }
        self
    }
}
