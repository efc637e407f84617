//! What an audit finds: effects, the causes of repeated ones, and violations.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use crate::Offence;

/// A cause for a repeated effect that the documentation states as a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// Its process was killed between the effect and the completion.
    Killed,
    /// Its process was stopped until after its lease, and then continued.
    Stopped,
    /// The handler was dropped at the deadline, between the effect and the completion.
    Cancelled,
    /// The invocation missed its deadline: its process was killed between the effect and the
    /// completion, or ran on beside its own retry.
    Overran,
    /// The completion could not be recorded until the deadline, and the function logged that.
    CompletionLost,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Killed => "killed between effect and completion",
            Self::Stopped => "stopped past the lease",
            Self::Cancelled => "dropped at the deadline after the effect",
            Self::Overran => "missed the deadline after the effect",
            Self::CompletionLost => "completion lost, and logged",
        })
    }
}

/// A broken guarantee that a run showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Its kind.
    pub offence: Offence,
    /// How often it happened here.
    pub times: u64,
    /// A description with the order or message.
    pub what: String,
    /// The executions of the order, if the violation concerns one.
    pub trace: Vec<String>,
}

/// What the audit found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) effects: u64,
    pub(crate) doubled: BTreeMap<Cause, u64>,
    /// Effects that came after one with a higher fence.
    pub(crate) stale: u64,
    /// Executions that collected an effect of a transaction that was not applied.
    pub(crate) not_committed: u64,
    /// Effects of transactions whose executions logged nothing afterwards.
    pub(crate) unanswered: u64,
    pub(crate) violations: Vec<Violation>,
}

impl Findings {
    pub(crate) fn violate(&mut self, offence: Offence, what: String, trace: Vec<String>) {
        self.violate_times(offence, 1, what, trace);
    }

    pub(crate) fn violate_times(
        &mut self,
        offence: Offence,
        times: u64,
        what: String,
        trace: Vec<String>,
    ) {
        self.violations.push(Violation { offence, times, what, trace });
    }
}
