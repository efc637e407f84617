//! The entries of a history: attempts with their effects, invocations, and what is known of each order.

use std::collections::{BTreeSet, HashMap};

use lambda_idempotency_local::Outcome;

use crate::ledger::Step;

/// An execution of a handler.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) order: usize,
    pub(crate) message: String,
    pub(crate) pid: u32,
    pub(crate) fence: u64,
    pub(crate) started: u64,
    pub(crate) effects: Vec<Effect>,
    /// It has collected an effect for its transaction.
    pub(crate) collected: bool,
    /// When it returned from the step in which it had its effect, among everything that happened.
    pub(crate) kept: Option<u64>,
    pub(crate) invocation: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Effect {
    /// Its place among everything that happened.
    pub(crate) at: u64,
    pub(crate) name: String,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// The rig stopped its process during the invocation.
    pub(crate) stopped: bool,
    /// It took longer than the timeout.
    pub(crate) overran: bool,
    /// The outcomes that the function logged, by message.
    pub(crate) logged: HashMap<String, Outcome>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answered,
    /// The rig killed its process.
    Killed,
    /// It missed its deadline.
    TimedOut,
    /// Its process ended by itself.
    Crashed,
}

#[derive(Debug, Default)]
pub(crate) struct OrderHistory {
    pub(crate) attempts: Vec<usize>,
    pub(crate) effects: u64,
    /// The steps that at least one attempt has run.
    pub(super) steps: BTreeSet<Step>,
    /// The counter of the order in its table, where effects are in transactions.
    pub(crate) placed: u64,
    /// The key hashes that the function logged for it.
    pub(crate) hashes: BTreeSet<String>,
    /// The first completion that the function logged.
    pub(crate) completed: Option<Completion>,
}

/// A completion: when it was logged, and the fence of the execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) known: u64,
    pub(crate) fence: u64,
}

/// The kind of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Offence {
    /// A message was acknowledged although its order had not been placed, or had failed permanently.
    Lost,
    /// A message was never settled, or a key is still held.
    Stuck,
    /// An order was placed again without an accepted cause.
    Doubled,
    /// A handler started for a key that was completed.
    RanAgain,
    /// A message was dead-lettered although its order does not fail permanently.
    DeadLettered,
    /// The store's records differ from what happened.
    Store,
    /// The first effect of a message came before that of an earlier message of its group.
    OutOfOrder,
    /// Two executions got the same fence.
    Fence,
    /// A process ended by itself, or an invocation failed as a whole.
    Crashed,
    /// The ledger contradicts itself.
    Ledger,
}
