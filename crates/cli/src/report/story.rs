//! What happened in a run, in time.

use std::time::Instant;

use lambda_idempotency_local::{Disposition, Invocation};

/// What happened in a run.
pub(crate) struct Story {
    /// When the run began.
    pub(crate) began: Instant,
    /// The invocations, in the order in which they ended.
    pub(crate) invocations: Vec<StoryInvocation>,
    /// The effects, in the order in which they were reported.
    pub(crate) effects: Vec<StoryEffect>,
}

/// An invocation, and what became of its records.
pub(crate) struct StoryInvocation {
    pub(crate) invocation: Invocation,
    pub(crate) messages: Vec<(String, Disposition)>,
}

/// An effect that a handler reported.
pub(crate) struct StoryEffect {
    /// When it was seen.
    pub(crate) at: Instant,
    pub(crate) pid: u32,
    /// The record for which it happened.
    pub(crate) message: String,
    /// The hash of its key, if the function said it.
    pub(crate) key_hash: Option<String>,
    pub(crate) name: String,
}
