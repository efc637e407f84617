//! A sink and its argument: a record that will never be processed, and why.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::{
    clock::BoxFuture,
    failure::Failure,
    outcome::{Outcome, Rejected},
};
use lambda_idempotency_engine::call::RecordId;

use crate::handler::{Callback, call_clone};

/// A record that was not processed and never will be, as a sink receives it.
#[derive(Clone)]
#[non_exhaustive]
pub struct DivertedRecord {
    /// Identifies the record and its content: a sink that is called again for the record gets the same id. It is a hash
    /// of the operation, the key with the fingerprint (or, without a key, the record's identity) and the content, so it
    /// holds no payload.
    ///
    /// A record that is sent again after its key was freed, and fails again, has the same id too.
    pub id: String,
    /// The operation's name.
    pub operation: Arc<str>,
    /// Which record.
    pub record: RecordId,
    /// The hash of its idempotency key, as in the log. To send the record again after a permanent failure, delete the
    /// item with this key first. `None` if the record has no key.
    pub key_hash: Option<String>,
    /// The record as AWS delivers it. For Kafka, as key expressions see it: key, value and headers
    /// are decoded, and bytes that are not text are `{"base64": ".."}` (in a header, a list of
    /// numbers). Contains the payload: do not log it.
    pub raw: String,
    /// Why it is not processed. The text contains no payload.
    pub reason: DivertReason,
}

/// Why a record was diverted instead of being processed. The text holds no payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DivertReason {
    /// The record cannot be processed as it is.
    #[error(transparent)]
    BadRecord(#[from] Rejected),
    /// Its handler failed permanently: by its own declaration, by the number of failed attempts or of those that were lost
    /// in a row, or by a timeout with a policy that makes it permanent.
    #[error(
        "its handler failed permanently, with {}, after {failed_attempts} failed attempt(s) for \
         this key",
        .error_type.as_deref().unwrap_or("an error of unknown type")
    )]
    PermanentFailure {
        /// The type of the error, or `a panic`, `a timeout` or `lost attempts`.
        error_type: Option<Arc<str>>,
        /// How often the handler failed for this key.
        failed_attempts: u32,
    },
    /// Its handler was stopped at its deadline, and [`OnTimeout::FailPermanently`](crate::policy::OnTimeout::FailPermanently) makes
    /// that permanent. A later delivery has a [`PermanentFailure`](Self::PermanentFailure) instead.
    #[error("its handler was stopped at its deadline, which fails the key permanently")]
    TimedOut,
    /// Its key was used before with another payload: the fingerprints differ.
    #[error("its key was used before with another payload: the fingerprints differ")]
    Mismatch,
}

impl DivertReason {
    /// Why a record with this outcome will never be processed, if that is so.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        let (error_type, failed_attempts) = match outcome {
            Outcome::Failed { failure, failed_attempts, permanent: true } => {
                (Some(failure.error_type().into()), *failed_attempts)
            }
            Outcome::PermanentlyFailed { error_type, failed_attempts } => {
                (error_type.clone(), *failed_attempts)
            }
            Outcome::Mismatch => return Some(Self::Mismatch),
            Outcome::Rejected(rejected) => return Some(Self::BadRecord(rejected.clone())),
            Outcome::TimedOut { permanent: true } => return Some(Self::TimedOut),
            _ => return None,
        };
        Some(Self::PermanentFailure { error_type, failed_attempts })
    }
}

/// The return value of a sink: `Result<(), E>`, where `E` converts to a [`Failure`].
#[diagnostic::on_unimplemented(
    message = "a sink cannot return `{Self}`",
    label = "this returns `{Self}`",
    note = "a sink is `async fn(DivertedRecord) -> Result<(), E>`: `Ok(())` says that it has the record, which is then \
            acknowledged",
    note = "`E` is `lambda_idempotency::Failure`, a type that implements `std::error::Error + Send + Sync`, or a `String`"
)]
pub trait SinkResult: 'static {
    #[doc(hidden)]
    fn into_result(self) -> Result<(), Failure>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<Failure> + 'static> SinkResult for Result<(), E> {
    fn into_result(self) -> Result<(), Failure> {
        self.map_err(Into::into)
    }
}

/// The user's function that takes records which will never be processed.
#[derive(Clone)]
pub(crate) struct Sink(Arc<SinkFn>);

type SinkFn = dyn Fn(DivertedRecord) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync;

impl Sink {
    pub(crate) fn new<R: SinkResult>(sink: impl Callback<DivertedRecord, R>) -> Self {
        Self(Arc::new(move |diverted| {
            let sending = call_clone(&sink, diverted);
            Box::pin(async move { sending.await.into_result() })
        }))
    }

    /// Begins to divert a record. The user's function may panic.
    pub(crate) fn call(&self, diverted: DivertedRecord) -> BoxFuture<'static, Result<(), Failure>> {
        let Self(sink) = self;
        sink(diverted)
    }
}

/// The end of a record: its outcome, and whether its sink has it.
pub(crate) struct RecordEnd {
    pub(crate) outcome: Outcome,
    pub(crate) is_diverted: bool,
}

impl RecordEnd {
    pub(crate) const fn is_acknowledged(&self) -> bool {
        self.is_diverted || self.outcome.is_acknowledged()
    }

    /// Why the record returns to its source, without payload; `None` if the delivery is acknowledged.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.is_diverted { None } else { self.outcome.problem() }
    }
}

impl From<Outcome> for RecordEnd {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, is_diverted: false }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}

/// Without the record itself: that is for no log.
impl fmt::Debug for DivertedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DivertedRecord")
            .field("id", &self.id)
            .field("operation", &self.operation)
            .field("record", &self.record)
            .field("key", &self.key_hash)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}
