//! The log line of each record, and of each batch.

use std::collections::BTreeMap;

use lambda_idempotency_core::outcome::Outcome;
use lambda_idempotency_keys::Key;

use super::{BatchEnd, Observer, Report};

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

    /// What the handler said.
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
                "record settled: processed, but not recorded; a duplicate would be processed again"
            ),
            (Outcome::Unprotected { outage: Some(error), .. }, _) => event!(
                ERROR,
                problem = %error,
                "record settled: processed without protection; a duplicate would be processed again"
            ),
            (_, None) if report.unrecorded.is_some() => event!(
                WARN,
                problem = report.unrecorded.map(tracing::field::display),
                "record settled: its messages are sent, but that is not recorded; they may be sent again, with the \
                 same ids"
            ),
            (Outcome::Executed { kept, .. }, _)
                if *kept != lambda_idempotency_core::outcome::ResultKept::Whole =>
            {
                event!(
                    WARN,
                    problem = ?kept,
                    "record settled: its result is not kept for duplicates"
                )
            }
            // A client's mistake, or one request too many: nothing is wrong with the function.
            (Outcome::Declined, problem) => event!(DEBUG, problem = problem, "record declined"),
            (Outcome::Rejected(_), Some(problem)) => {
                event!(WARN, problem = problem, "record refused");
            }
            (_, Some(problem)) => event!(
                WARN,
                problem = problem,
                error_message = self.message(report),
                "record returned"
            ),
            (_, None) => event!(DEBUG, "record settled"),
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
