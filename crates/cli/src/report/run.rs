//! What a page is made of, from whichever command.

use std::time::Instant;

use lambda_idempotency_chaos::FaultKind;
use lambda_idempotency_local::{Invocation, InvocationResult};

/// A run.
pub(crate) struct Run<'a> {
    pub(crate) title: String,
    /// The command, or the settings.
    pub(crate) subtitle: String,
    /// Whether all went well, and the sentence that says so or not.
    pub(crate) verdict: (bool, String),
    /// Numbers with their meaning.
    pub(crate) numbers: Vec<(String, &'static str)>,
    pub(crate) began: Instant,
    pub(crate) invocations: Vec<Shown<'a>>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) signals: Vec<Signal>,
    /// Further tables.
    pub(crate) lists: Vec<List>,
    /// The name of the work of a record, where it is known without its key.
    pub(crate) work_of: fn(&str) -> Option<String>,
}

impl Run<'_> {
    /// Milliseconds from the beginning of the run to `at`.
    pub(crate) fn ms(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.began).as_secs_f64() * 1000.0
    }
}

/// An invocation, and for each of its records what the source did with it.
pub(crate) struct Shown<'a> {
    pub(crate) invocation: &'a Invocation,
    pub(crate) ends: Vec<(String, &'static str)>,
}

impl Shown<'_> {
    /// Whether its process died or missed its deadline.
    pub(crate) fn is_cut_off(&self) -> bool {
        matches!(
            self.invocation.result,
            InvocationResult::Exited { .. } | InvocationResult::TimedOut
        )
    }
}

/// An effect that the function reported.
pub(crate) struct Effect {
    pub(crate) at: Instant,
    pub(crate) pid: u32,
    pub(crate) record: String,
    pub(crate) key_hash: Option<String>,
    pub(crate) name: String,
}

/// A signal that was sent to a process.
pub(crate) struct Signal {
    pub(crate) at: Instant,
    pub(crate) pid: u32,
    pub(crate) kind: FaultKind,
}

/// A table of the page.
pub(crate) struct List {
    pub(crate) title: &'static str,
    pub(crate) header: &'static [&'static str],
    pub(crate) rows: Vec<Vec<String>>,
}
