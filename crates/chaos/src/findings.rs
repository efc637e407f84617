//! The findings of an audit: effects, the causes of repeated ones, and violations.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use crate::history::Offence;

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
    /// The step in which it happened could not be recorded, and the handler failed.
    StepNotKept,
    /// The handler of a user's function failed after its effect, and was tried again.
    HandlerFailed,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Killed => "killed between effect and completion",
            Self::Stopped => "stopped past the lease",
            Self::Cancelled => "dropped at the deadline after the effect",
            Self::Overran => "missed the deadline after the effect",
            Self::CompletionLost => "completion lost, and logged",
            Self::StepNotKept => "step not recorded, and handler failed",
            Self::HandlerFailed => "handler failed after the effect",
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

/// The findings of the audit.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Findings {
    /// Effects.
    pub effects: u64,
    /// Effects beyond the first of their key, by their accepted cause.
    pub doubled: BTreeMap<Cause, u64>,
    /// The effects among them that came after one with a higher fence: a system that compares
    /// `Call::fence()` would have refused them.
    pub stale: u64,
    /// Executions that collected an effect for their transaction, which was not applied: the handler or its process
    /// was stopped, or it had lost its key.
    pub not_committed: u64,
    /// Handlers that started for a completed key, and applied nothing: without claims they may.
    pub ran_again: u64,
    /// Executions that got the result of a step from an earlier one, and did not make its effect again.
    pub answered_steps: u64,
    /// Broken guarantees; empty if there are none.
    pub violations: Vec<Violation>,
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

    /// How often this kind of violation happened.
    #[must_use]
    pub fn count(&self, offence: Offence) -> u64 {
        let of = self.violations.iter().filter(|violation| violation.offence == offence);
        of.map(|violation| violation.times).sum()
    }
}
