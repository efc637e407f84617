//! Reports outcomes, calls of the store and ends of invocations to the log and to observers of the user.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{call::RecordId, machine::Input};
use lambda_idempotency_core::{
    clock::Timestamp,
    contained::caught,
    outcome::{Outcome, ResultKept},
    record::{IdempotencyRecord, Status},
    store::{StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

/// Gets reports of what happens. It must return quickly. If it panics, neither records nor other observers are
/// affected.
pub trait Observer: Send + Sync + 'static {
    /// A delivery has its outcome.
    fn reported(&self, report: &Report<'_>);

    /// A call of the store has ended. Calls for which an invocation no longer waits are not reported.
    ///
    /// Default: does nothing.
    fn store_called(&self, call: &StoreCall<'_>) {
        let _ = call;
    }

    /// All records of an operation in one invocation have their outcomes. An invocation that Lambda ends, or whose
    /// future is dropped, does not come to this.
    ///
    /// Default: does nothing.
    fn batch_ended(&self, end: &BatchEnd<'_>) {
        let _ = end;
    }
}

/// The end of an operation's records in one invocation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BatchEnd<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The source of the records.
    pub source: &'static str,
    /// How many records there were.
    pub records: usize,
    /// How often a key was found completed in the cache of this process.
    pub cache_hits: usize,
    /// How long it took, from the records to the last outcome.
    pub took: Duration,
    /// When it was.
    pub at: Timestamp,
}

impl<'a> BatchEnd<'a> {
    pub(crate) const fn new(operation: &'a str, source: &'static str, records: usize) -> Self {
        let (took, at) = (Duration::ZERO, Timestamp::EPOCH);
        Self { operation, source, records, cache_hits: 0, took, at }
    }
}

/// One delivery and its outcome.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Report<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The record.
    pub record: &'a RecordId,
    /// The key, if the record has one.
    pub key: Option<&'a Key>,
    /// The outcome of the delivery.
    pub outcome: &'a Outcome,
    /// How long the record waited from the beginning of the invocation until its handler was started, if that came to
    /// be: for its claim, for a busy key, for records before it.
    pub waited: Option<Duration>,
    /// How long the handler ran, if it did.
    pub ran_for: Option<Duration>,
    /// How long it took from the handler's return until the outcome was known, which includes the completion. `None` if
    /// the handler did not return.
    pub settled_in: Option<Duration>,
    /// Why the store does not know that the record's messages were sent, so that they may be sent again, with the same
    /// ids.
    pub unrecorded: Option<&'a StoreError>,
    /// How many attempts for the key failed before this one, if that is known.
    pub failed_attempts: u32,
    /// How many attempts for the key were lost before this one, if that is known.
    pub lost_attempts: u32,
}

impl<'a> Report<'a> {
    pub(crate) const fn new(
        operation: &'a str,
        record: &'a RecordId,
        key: Option<&'a Key>,
        outcome: &'a Outcome,
    ) -> Self {
        Self {
            operation,
            record,
            key,
            outcome,
            waited: None,
            ran_for: None,
            settled_in: None,
            unrecorded: None,
            failed_attempts: 0,
            lost_attempts: 0,
        }
    }
}

/// A call of the store that has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StoreCall<'a> {
    /// The operation whose records it was for.
    pub operation: &'a str,
    /// The source of the records.
    pub source: &'static str,
    /// Its purpose.
    pub purpose: StorePurpose,
    /// How many keys it read, or records it wrote.
    pub members: usize,
    /// How long it took.
    pub took: Duration,
    /// The errors of those that failed.
    pub errors: &'a [StoreErrorKind],
}

/// The purpose of a call of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StorePurpose {
    /// To read keys before they are claimed.
    Look,
    /// To claim keys.
    Claim,
    /// To record how claims ended: completions, failures, releases.
    Settle,
    /// To extend leases.
    Renew,
}

impl StorePurpose {
    /// A stable word for logs and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Claim => "claim",
            Self::Settle => "settle",
            Self::Renew => "renew",
        }
    }

    /// The purpose of these writes. All writes of a call have one, except that a call of claims may also renew a claim
    /// that was applied before and whose answer was lost.
    ///
    /// Only a claim or a renewal leaves a record that is in progress and has an owner.
    pub(crate) fn of(writes: &[Write]) -> Self {
        let leaves_a_claim = |record: &IdempotencyRecord| {
            record.status == Status::InProgress && record.owner.is_some()
        };
        match writes.first() {
            Some(_) if writes.iter().any(Write::is_claim) => Self::Claim,
            Some(write) if write.record.as_ref().is_some_and(leaves_a_claim) => Self::Renew,
            _ => Self::Settle,
        }
    }
}

/// The errors in an answer of the store.
pub(crate) fn errors(answer: &Input) -> Vec<StoreErrorKind> {
    match answer {
        Input::Read { found, .. } => {
            found.iter().filter_map(|found| Some(found.as_ref().err()?.kind())).collect()
        }
        Input::Written { verdicts, .. } => {
            let unknown = verdicts.iter().filter_map(|verdict| match verdict {
                Verdict::Unknown(error) => Some(error.kind()),
                Verdict::Written | Verdict::Found(_) | Verdict::EffectRefused(_) => None,
            });
            unknown.collect()
        }
        _ => Vec::new(),
    }
}

/// Writes one `tracing` event a record, under the target `lambda_idempotency::record`: `DEBUG` where there is nothing to say,
/// `WARN` where the record was returned or something is wrong with it, `ERROR` where work is not recorded. Where a batch had
/// several records, one event more with the target `lambda_idempotency::batch` and the level `INFO` counts their outcomes.
///
/// The fields are a stable contract: `source`, `record`, `operation`, `key_hash`, `outcome`, `ms`,
/// `failed_attempts` (with this one, if it failed), `lost_attempts`, and `problem` where the delivery is returned or something is
/// wrong with it. Never a payload, a raw key or a result; and of a handler's error its type alone, unless
/// [`showing_error_messages`](Self::showing_error_messages) asks for more. `record` is the record's
/// [label](crate::call::RecordId::label), which hides an id that an application has chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingObserver {
    error_messages: bool,
}

impl TracingObserver {
    /// One that shows the types of handlers' errors, and not what these say.
    #[must_use]
    pub const fn new() -> Self {
        Self { error_messages: false }
    }

    /// Shows what handlers' errors say as well: a field `error_message` with the error's message and
    /// those of its sources, 2000 characters at most; for a panic, what it said. Default: off.
    ///
    /// **Messages quote payloads**: an error of a parser or a database shows the value that it
    /// refused. Use this where everybody who reads the log may read the payloads too.
    #[must_use]
    pub const fn showing_error_messages(mut self) -> Self {
        self.error_messages = true;
        self
    }

    /// Whether what errors say is shown.
    #[must_use]
    pub const fn shows_error_messages(self) -> bool {
        self.error_messages
    }

    /// The message of the handler's error.
    fn message(self, report: &Report<'_>) -> Option<String> {
        match report.outcome {
            Outcome::Failed { failure, .. } if self.error_messages => Some(failure.messages()),
            _ => None,
        }
    }
}

impl Observer for TracingObserver {
    fn reported(&self, report: &Report<'_>) {
        macro_rules! event {
            ($level:ident, $($extra:tt)*) => {
                tracing::event!(
                    target: "lambda_idempotency::record",
                    tracing::Level::$level,
                    source = report.record.source,
                    record = report.record.label(),
                    operation = report.operation,
                    key_hash = report.key.map_or("", Key::hash),
                    outcome = report.outcome.label(),
                    ms = report.ran_for.map_or(0.0, |ran_for| ran_for.as_secs_f64() * 1000.0),
                    failed_attempts = failed_attempts(report),
                    lost_attempts = report.lost_attempts,
                    $($extra)*
                )
            };
        }
        match (report.outcome, report.outcome.problem()) {
            (Outcome::CompletionLost { error, .. }, _) => event!(
                ERROR,
                problem = %error,
                "record done, but not recorded: a duplicate would be processed again"
            ),
            (Outcome::Unprotected { outage: Some(error), .. }, _) => event!(
                ERROR,
                problem = %error,
                "record done without protection: a duplicate would be processed again"
            ),
            (_, None) if report.unrecorded.is_some() => event!(
                WARN,
                problem = report.unrecorded.map(tracing::field::display),
                "record done: its messages are sent, but that is not recorded; they may be sent again, with the \
                 same ids"
            ),
            (Outcome::Executed { kept, .. }, _) if *kept != ResultKept::Whole => {
                event!(
                    WARN,
                    problem = %kept,
                    "record done: its result is not kept for duplicates"
                )
            }
            // A client's mistake, or one request too many: nothing is wrong with the function.
            (Outcome::Declined, problem) => event!(DEBUG, problem = problem, "record declined"),
            (Outcome::Rejected(_), Some(problem)) => {
                event!(WARN, problem = problem, "record rejected");
            }
            (_, Some(problem)) => event!(
                WARN,
                problem = problem,
                error_message = self.message(report),
                "record returned"
            ),
            (_, None) => event!(DEBUG, "record done"),
        }
    }
}

impl TracingObserver {
    /// Counts the outcomes of a batch of several records.
    pub(crate) fn summarise(self, end: &BatchEnd<'_>, outcomes: &BTreeMap<&'static str, usize>) {
        let counts = outcomes.iter().map(|(outcome, number)| format!("{number} {outcome}"));
        tracing::info!(
            target: "lambda_idempotency::batch",
            source = end.source,
            operation = end.operation,
            records = end.records,
            outcomes = counts.collect::<Vec<_>>().join(", "),
            "batch ended"
        );
    }
}

/// How many attempts for the key failed by now.
const fn failed_attempts(report: &Report<'_>) -> u32 {
    match report.outcome {
        Outcome::Failed { failed_attempts, .. } => *failed_attempts,
        _ => report.failed_attempts,
    }
}

/// The log, if there is one, and the user's observers, in the order in which they were added.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    log: Option<TracingObserver>,
    others: Arc<[Arc<dyn Observer>]>,
}

impl Observers {
    pub(crate) const fn set_log(&mut self, log: Option<TracingObserver>) {
        self.log = log;
    }

    pub(crate) const fn log(&self) -> Option<TracingObserver> {
        self.log
    }

    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.others = self.others.iter().cloned().chain([observer]).collect();
    }

    /// Whether there are others beside the log, which gets outcomes of records only.
    pub(crate) fn are_any(&self) -> bool {
        !self.others.is_empty()
    }

    /// Reports a record to the log and to the others.
    pub(crate) fn report(&self, report: &Report<'_>) {
        if let Some(log) = &self.log {
            caught(|| log.reported(report));
        }
        self.tell(|observer| observer.reported(report));
    }

    /// Counts the outcomes of a batch in the log.
    pub(crate) fn log_end(&self, end: &BatchEnd<'_>, outcomes: &BTreeMap<&'static str, usize>) {
        if let Some(log) = &self.log {
            caught(|| log.summarise(end, outcomes));
        }
    }

    /// Calls each of the others. If one panics, the rest are called all the same.
    pub(crate) fn tell(&self, what: impl Fn(&dyn Observer)) {
        for observer in &*self.others {
            caught(|| what(&**observer));
        }
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::{
        record::Owner,
        store::{Guard, RecordVersion},
    };

    use super::*;

    fn record(status: Status, owner: Option<u128>) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(status, Timestamp::from_secs(9));
        record.owner = owner.map(Owner::from_bits);
        record
    }

    fn write(guard: Guard, record: Option<IdempotencyRecord>) -> Write {
        Write::new(Key::from_text("a#1"), guard, record)
    }

    #[test]
    fn each_kind_of_write_has_its_purpose() {
        let held = |owner| record(Status::InProgress, Some(owner));
        let seen = |owner| Guard::Unchanged(RecordVersion::of(&held(owner)));
        let mine = || Guard::OwnedBy(Owner::from_bits(1));
        let completed = || Some(record(Status::Completed, Some(1)));
        for (guard, record, expected) in [
            (Guard::Absent, Some(held(1)), StorePurpose::Claim),
            (seen(2), Some(held(1)), StorePurpose::Claim),
            (seen(1), Some(held(1)), StorePurpose::Renew),
            (mine(), completed(), StorePurpose::Settle),
            (Guard::Absent, completed(), StorePurpose::Settle),
            (mine(), Some(record(Status::InProgress, None)), StorePurpose::Settle),
            (mine(), None, StorePurpose::Settle),
        ] {
            let purpose = StorePurpose::of(&[write(guard.clone(), record)]);
            assert_eq!(purpose, expected, "{guard:?}");
        }
        let renewal = write(seen(1), Some(held(1)));
        let beside = StorePurpose::of(&[renewal, write(Guard::Absent, Some(held(2)))]);
        assert_eq!(beside, StorePurpose::Claim);
    }
}
