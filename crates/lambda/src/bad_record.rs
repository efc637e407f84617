//! What becomes of records that cannot be processed as they are.

use std::{fmt, future::Future, sync::Arc};

use lambda_idempotency_core::{failure::Failure, outcome::DivertReason};
use lambda_idempotency_engine::call::RecordId;

use crate::{
    divert::{DivertedRecord, Sink},
    rejection::Rejection,
};

/// What becomes of a record that cannot be processed as it is.
///
/// In a queue such a record ends in the dead-letter queue. In a stream or partition it is in the way
/// of all that is behind it, until its retries are used up or it expires.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum OnBadRecord {
    /// It fails, and goes back to its source.
    #[default]
    Return,
    /// It is put aside somewhere else, and acknowledged once it is there. Made by
    /// [`OnBadRecord::divert`].
    Divert(Sink),
}

/// A record that cannot be processed as it is.
#[derive(Clone)]
#[non_exhaustive]
pub struct BadRecord {
    /// The operation's name.
    pub operation: Arc<str>,
    /// Which record.
    pub record: RecordId,
    /// The record as AWS delivers it. Of Kafka, as key expressions see it: key, value and headers are
    /// decoded, and bytes that are no text are `{"base64": ".."}` (of a header, a list of numbers).
    /// Holds the payload: not for logs.
    pub raw: String,
    /// What is wrong with it, in words that hold no payload.
    pub rejection: Rejection,
}

impl OnBadRecord {
    /// Puts bad records aside by calling `sink`, and no others:
    /// [`Operation::divert`](crate::Operation::divert) is one sink for them and for permanent failures
    /// and mismatches. A record is acknowledged only if that returned
    /// `Ok`; if not, it goes back to its source. It is put aside once, however often it is delivered
    /// within the operation's retention. Its outcome is
    /// [`Outcome::Diverted`](crate::Outcome::Diverted), and its line in the log a warning that says
    /// what is wrong with it.
    ///
    /// ```
    /// use lambda_idempotency::{BadRecord, Failure, OnBadRecord, Operation};
    ///
    /// async fn send_to_queue(bad: BadRecord) -> Result<(), Failure> {
    ///     // sqs.send_message().queue_url(..).message_body(bad.raw).send().await?;
    ///     Ok(())
    /// }
    /// let index = Operation::new("index").on_bad_record(OnBadRecord::divert(send_to_queue));
    /// ```
    #[must_use]
    pub fn divert<F, Fut, E>(sink: F) -> Self
    where
        F: Fn(BadRecord) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure>,
    {
        let sink = Arc::new(sink);
        Self::Divert(Sink::new(move |diverted: DivertedRecord| {
            let DivertedRecord { operation, record, raw, reason, .. } = diverted;
            let sink = Arc::clone(&sink);
            async move {
                match reason {
                    DivertReason::BadRecord(rejection) => {
                        let rejection = rejection.into();
                        sink(BadRecord { operation, record, raw, rejection })
                            .await
                            .map_err(Into::into)
                    }
                    _ => Err(Failure::transient("a sink for bad records alone")),
                }
            }
        }))
    }
}

/// Without the record itself: that is for no log.
impl fmt::Debug for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BadRecord")
            .field("operation", &self.operation)
            .field("record", &self.record)
            .field("rejection", &self.rejection)
            .finish_non_exhaustive()
    }
}
