//! The inputs of the machine, its outputs, and the questions that its surroundings answer at once.

use std::{
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
    time::Duration,
};

use lambda_idempotency_core::{
    admission::Held,
    clock::Timestamp,
    effects::Effects,
    failure::Failure,
    outbox::{OutgoingMessage, SendError},
    outcome::{NotStarted, Outcome},
    policy::Policy,
    record::{EntropyError, IdempotencyRecord, Json, Owner, Provenance},
    store::{StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

use super::calls::CallId;
use crate::delivery::Returned;

/// Settings that are the same for the whole batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<'a> {
    /// The operation's name.
    pub operation: &'a str,
    /// The application that claims, if it has a name.
    pub application: Option<Arc<str>>,
    /// How records are treated.
    pub policy: &'a Policy,
    /// When the invocation ends. `None` if that is not known: then it ends after the policy's fallback timeout.
    pub deadline: Option<Timestamp>,
    /// When the work has to be done, if that is before the deadline: then the handler is stopped that waits for it.
    pub work_end: Option<Timestamp>,
    /// How much time handlers leave for work after the batch, a fifth at most.
    pub time_after: Duration,
    /// Whether records that are returned are delivered again. If not, claiming goes on for as long as a handler could start.
    pub is_redelivered: bool,
}

impl Hash for Setting<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // It is the same in all states of a machine.
        (self.deadline, self.work_end, self.time_after).hash(state);
    }
}

/// An event outside of the machine.
#[derive(Debug)]
pub enum Input {
    /// The store has answered a read: one answer for each key.
    Read {
        /// Which call.
        call: CallId,
        /// The records that were found. A missing one counts as unanswered.
        found: Vec<Result<Option<IdempotencyRecord>, StoreError>>,
    },
    /// The store has answered a write.
    Written {
        /// Which call.
        call: CallId,
        /// The writes.
        writes: Vec<Write>,
        /// One for each write. A missing one counts as unanswered.
        verdicts: Vec<Verdict>,
    },
    /// The sender has answered.
    Sent {
        /// Which call.
        call: CallId,
        /// One for each message. A missing one counts as not sent.
        answers: Vec<Result<(), SendError>>,
    },
    /// A handler has ended.
    Ended {
        /// Whose.
        at: usize,
        /// How.
        ended: HandlerEnd,
        /// When it was called; `None` if it was not.
        since: Option<Timestamp>,
        /// For how long handlers were polled since the machine was told last.
        polled: Duration,
    },
    /// Steps of a running handler have ended, and wait until the store has what they returned.
    Steps {
        /// Whose.
        at: usize,
        /// The text of all steps of the key that have ended, in this attempt and in those before.
        steps: Json,
    },
    /// Handlers were polled, and none has ended.
    Polled {
        /// For how long since the machine was told last.
        polled: Duration,
    },
}

/// The answers of a call, and what is `missing` for ever after: a store that answers too little must not
/// make a delivery disappear.
pub(crate) fn each<T>(answers: Vec<T>, missing: impl FnMut() -> T) -> impl Iterator<Item = T> {
    answers.into_iter().chain(std::iter::repeat_with(missing))
}

/// The error in place of an answer that a store did not give.
pub(crate) fn unanswered() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "the store gave fewer answers than it was asked for; run its conformance tests",
    )
}

/// The error in place of an answer that a sender did not give.
pub(crate) fn unsent() -> SendError {
    SendError::new("the sender gave fewer answers than it was asked for; correct it")
}

/// How a handler ended.
#[derive(Debug)]
pub enum HandlerEnd {
    /// It was called, and this is its answer, with what its call collected.
    Through(Result<(Returned, Collected), Failure>),
    /// It was not called: its lease or the time for handlers was over.
    NotBegun(NotStarted),
}

/// The part of its completion that a call collected.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Effects to commit.
    pub effects: Option<Effects>,
    /// Messages to store, and to send after that.
    pub outbox: Option<Json>,
    /// How long the completion is to answer, if the call asked for another time than the operation's retention.
    pub retention: Option<Duration>,
}

/// A task for the driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read these keys, and hand in the answers.
    Read {
        /// The id that the answer has to carry.
        call: CallId,
        /// The keys.
        keys: Vec<Key>,
        /// The call deadline.
        deadline: Timestamp,
    },
    /// Apply these writes, and hand in the store's verdicts.
    Write {
        /// The id that the answer has to carry.
        call: CallId,
        /// The writes.
        writes: Vec<Write>,
        /// When the answer must be there.
        deadline: Timestamp,
    },
    /// Send these messages, and hand in one answer for each.
    Send {
        /// The id that the answer has to carry.
        call: CallId,
        /// The messages, in any order.
        messages: Vec<OutgoingMessage>,
        /// When the answer must be there.
        deadline: Timestamp,
    },
    /// Poll the calls of the store, then yield to other tasks once, before a handler is polled. So a
    /// completion is sent before a handler keeps the processor again.
    GiveWay,
    /// Call the handler of a record.
    Start {
        /// Which record.
        at: usize,
        /// Its claim; `None` if it runs without one.
        held: Option<Arc<Held>>,
        /// The handler is stopped at this instant, or not called if it comes first.
        stop: Timestamp,
    },
    /// Report the outcome of a record.
    Report(RecordOutcome),
}

/// The outcome of a record, and what else is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordOutcome {
    /// Which record.
    pub at: usize,
    /// Its outcome.
    pub outcome: Carried<Outcome>,
    /// Why the store does not know that its messages were sent.
    pub unrecorded: Option<Box<Carried<StoreError>>>,
    /// How long the handler ran, if it did.
    pub ran_for: Option<Duration>,
    /// The claim, if there was one.
    pub held: Option<Arc<Held>>,
}

/// The surroundings of a machine: they make tokens, remember completed keys, and call user code. A model checker has its
/// own host, whose answers are part of the state.
pub trait Host {
    /// A fresh owner token, never handed out before.
    ///
    /// # Errors
    /// The operating system returned no random bytes.
    fn owner(&mut self) -> Result<Owner, EntropyError>;

    /// Where a claim of record `at` comes from, for people who look at the store.
    fn provenance(&self, at: usize, now: Timestamp) -> Option<Provenance>;

    /// How long handlers of the operation have taken so far.
    fn pace(&self) -> Duration;

    /// A handler has taken this long.
    fn took(&mut self, took: Duration);

    /// This record was seen in the store under this key.
    fn learn(&mut self, key: &Key, record: &IdempotencyRecord, now: Timestamp);

    /// The completed record of a key, if this process remembers it.
    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>>;

    /// The lease of record `at` was renewed: its handler may begin up to and including `lease_until`.
    fn renewed(&mut self, at: usize, lease_until: Timestamp);

    /// The store has these steps of record `at`: what waits for them goes on.
    fn steps_stored(&mut self, at: usize, steps: &Json);

    /// The store refuses to keep the steps of record `at`, and it is of no use to wait: steps that wait end
    /// with this error.
    fn steps_refused(&mut self, at: usize, error: &StoreError);

    /// Drops the handler of record `at`. Returns when it was called, if it was.
    fn stop(&mut self, at: usize) -> Option<Timestamp>;
}

/// An error or an outcome, which the machine only hands on. It has no equality, since
/// users' errors have none; two states of a machine count as equal if what they carry reads the same
/// in `Debug`, which shows kinds, types and counts.
#[derive(Clone)]
pub struct Carried<T>(pub T);

impl<T> Deref for Carried<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Carried<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> PartialEq for Carried<T> {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl<T: fmt::Debug> Eq for Carried<T> {}

impl<T: fmt::Debug> Hash for Carried<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{self:?}").hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use super::*;

    fn hash(carried: &Carried<&str>) -> u64 {
        let mut hasher = DefaultHasher::new();
        carried.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn what_reads_the_same_is_equal_and_has_one_hash() {
        assert!(Carried("a") == Carried("a") && Carried("a") != Carried("b"));
        assert_eq!(hash(&Carried("a")), hash(&Carried("a")));
        assert_ne!(hash(&Carried("a")), hash(&Carried("b")));
    }
}
