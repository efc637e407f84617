//! The size of a world, and how it is explored.

use crate::{
    state::Faults,
    witness::{Event, Witness},
};

/// By how much two clocks may differ, in ticks. A clock may step within it at any time, so the
/// model lets each single reading fall anywhere in it: that covers every way of stepping.
pub const SKEW: u8 = 1;

/// One configuration.
#[derive(Debug)]
pub struct Setup {
    pub name: &'static str,
    pub workers: usize,
    pub keys: usize,
    /// Of each key; no more than this can be in flight at once.
    pub deliveries: u8,
    /// The last tick.
    pub end: u8,
    /// How long a claim asks for.
    pub lease: u8,
    /// How long a renewal asks for; 0: there are none.
    pub renewal: u8,
    pub retention: u8,
    pub faults: Faults,
    /// Handlers may fail for good.
    pub remember: bool,
    /// Workers may put back what they claimed.
    pub put_back: bool,
    /// Workers may release a key after a completion got no answer.
    pub regret: bool,
    /// Answers take time; otherwise a worker reads the answer when its write lands.
    pub answers_travel: bool,
    /// What must have happened.
    pub expect: &'static [Event],
    pub witness: Witness,
}

impl Setup {
    /// The smallest world worth looking at.
    pub fn new(name: &'static str) -> Self {
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
            answers_travel: false,
            expect: &[],
            witness: Witness::default(),
        }
    }
}
