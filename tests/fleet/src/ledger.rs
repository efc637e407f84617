//! What handlers did, outside the table: two bytes for a key.

use std::collections::{BTreeMap, HashMap};

use lambda_idempotency_core::outcome::Outcome;

/// The effects of all handlers.
pub struct Ledger {
    /// How many effects each key had.
    effects: Vec<u8>,
    /// How many of them had a cause to be followed by another.
    excused: Vec<u8>,
    /// The keys on which handlers work now.
    running: HashMap<u32, u32>,
    tally: Tally,
}

/// Why an effect may be followed by another: those that the guarantees name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its process was killed before the completion.
    Killed,
    /// The store did not take the completion until the end of the invocation.
    CompletionLost,
    /// Its handler was stopped at the deadline.
    Stopped,
}

/// The sums of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Effects of handlers.
    pub effects: u64,
    /// Effects beyond the first of a key.
    pub doubled: u64,
    /// Those among them that nothing explains.
    pub unexplained: u64,
    /// The reasons why an effect might be followed by another.
    pub causes: BTreeMap<Cause, u64>,
    /// Handlers that began while another worked on the same key.
    pub overlaps: u64,
    /// Records that were acknowledged although no handler had succeeded for their key.
    pub lost: u64,
    /// Records that were executed while the table does not say that their keys are completed.
    pub uncompleted: u64,
    /// The outcomes of all deliveries.
    pub outcomes: BTreeMap<&'static str, u64>,
}

impl Ledger {
    /// A ledger for so many keys.
    #[must_use]
    pub fn for_keys(keys: u32) -> Self {
        let none = vec![0; keys as usize];
        Self {
            effects: none.clone(),
            excused: none,
            running: HashMap::new(),
            tally: Tally::default(),
        }
    }

    /// A handler begins.
    pub fn begins(&mut self, key: u32) {
        let running = self.running.entry(key).or_default();
        *running += 1;
        self.tally.overlaps += u64::from(*running > 1);
    }

    /// A handler has ended, by itself or not.
    pub fn ends(&mut self, key: u32) {
        if let Some(running) = self.running.get_mut(&key) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&key);
            }
        }
    }

    /// A handler has had its effect.
    pub fn effect(&mut self, key: u32) {
        let effects = &mut self.effects[key as usize];
        *effects = effects.saturating_add(1);
        self.tally.effects += 1;
    }

    /// Another effect of this key would have this cause.
    pub fn excuse(&mut self, key: u32, cause: Cause) {
        let excused = &mut self.excused[key as usize];
        *excused = excused.saturating_add(1);
        *self.tally.causes.entry(cause).or_default() += 1;
    }

    /// A record has this outcome.
    pub fn outcome(&mut self, key: u32, outcome: &Outcome) {
        *self.tally.outcomes.entry(outcome.label()).or_default() += 1;
        self.tally.lost += u64::from(outcome.is_acknowledged() && self.effects[key as usize] == 0);
    }

    /// A record was executed, and its key is not completed.
    pub const fn uncompleted(&mut self) {
        self.tally.uncompleted += 1;
    }

    /// Whether a handler has had its effect for this key.
    #[must_use]
    pub fn is_done(&self, key: u32) -> bool {
        self.effects[key as usize] > 0
    }

    /// The sums.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut tally = self.tally.clone();
        for (effects, excused) in self.effects.iter().zip(&self.excused) {
            tally.doubled += u64::from(effects.saturating_sub(1));
            tally.unexplained += u64::from(effects.saturating_sub(1).saturating_sub(*excused));
        }
        tally
    }
}
