//! What happened in a run, in time, for a page that shows it.

use std::time::Instant;

use lambda_idempotency_local::{Disposition, Invocation};

use crate::{FaultKind, history::History, schedule};

/// What happened in a run.
#[derive(Clone, Debug)]
pub struct Story {
    /// When the run began.
    pub began: Instant,
    /// The invocations, in the order in which they ended.
    pub invocations: Vec<StoryInvocation>,
    /// The effects, in the order in which they were reported.
    pub effects: Vec<StoryEffect>,
    /// The signals that were sent to processes.
    pub faults: Vec<StoryFault>,
}

/// An invocation, and what the queue did with its messages.
#[derive(Clone, Debug)]
pub struct StoryInvocation {
    /// The invocation.
    pub invocation: Invocation,
    /// Its messages.
    pub messages: Vec<(String, Disposition)>,
}

/// An effect of an execution.
#[derive(Clone, Debug)]
pub struct StoryEffect {
    /// When it was seen.
    pub at: Instant,
    /// The process.
    pub pid: u32,
    /// The message for which it happened.
    pub message: String,
    /// The hash of its key, if the function said it.
    pub key_hash: Option<String>,
    /// Its name.
    pub name: String,
}

/// A signal to a process.
#[derive(Clone, Debug)]
pub struct StoryFault {
    /// When it was sent.
    pub at: Instant,
    /// The process.
    pub pid: u32,
    /// `kill` or `stop`.
    pub kind: FaultKind,
}

impl Story {
    /// One in which nothing has happened yet.
    #[must_use]
    pub fn new(began: Instant) -> Self {
        Self { began, invocations: Vec::new(), effects: Vec::new(), faults: Vec::new() }
    }

    pub(crate) fn with_effects(mut self, history: &History) -> Self {
        let effects = history.attempts.iter().flat_map(|attempt| {
            attempt.effects.iter().map(|effect| StoryEffect {
                at: effect.time,
                pid: attempt.pid,
                message: attempt.message.clone(),
                key_hash: None,
                name: effect.name.clone(),
            })
        });
        self.effects.extend(effects);
        self.effects.sort_by_key(|effect| effect.at);
        self
    }

    /// The name of the work of a message: copies of one piece of work have one name.
    #[must_use]
    pub fn work_of(message: &str) -> Option<String> {
        schedule::order_of(message).map(schedule::id)
    }
}
