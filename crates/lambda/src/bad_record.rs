//! The policy for records that cannot be processed as they are.

use std::{fmt, future::Future, sync::Arc};

use lambda_idempotency_core::{failure::Failure, outcome::DivertReason};
use lambda_idempotency_engine::call::RecordId;

use crate::{
    divert::{DivertedRecord, Sink},
    rejection::Rejection,
};

/// What to do with a record that cannot be processed as it is.
///
/// A queue moves such a record to its dead-letter queue. In a stream or partition it blocks all
/// records behind it until its retries are used up or it expires.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum OnBadRecord {
    /// The record fails and returns to its source.
    #[default]
    Return,
    /// A sink puts the record aside, and the record is acknowledged once the sink has succeeded.
    /// Made by [`OnBadRecord::divert`].
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
    /// The record as AWS delivers it. For Kafka, as key expressions see it: key, value and headers
    /// are decoded, and bytes that are not text are `{"base64": ".."}` (in a header, a list of
    /// numbers). Contains the payload: do not log it.
    pub raw: String,
    /// What is wrong with the record. Its text contains no payload.
    pub rejection: Rejection,
}

impl OnBadRecord {
    /// Puts bad records aside by calling `sink`. To put aside permanent failures and mismatches as
    /// well, use [`Operation::divert`](crate::Operation::divert). A record is acknowledged only if
    /// `sink` returned `Ok`; otherwise it returns to its source. It is put aside once, however
    /// often it is delivered within the operation's retention. Its outcome is
    /// [`Outcome::Diverted`](crate::Outcome::Diverted), and its log line is a warning that says
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
                    _ => Err(Failure::transient("this sink accepts bad records only")),
                }
            }
        }))
    }
}

/// Without the record itself, which must not be logged.
impl fmt::Debug for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BadRecord")
            .field("operation", &self.operation)
            .field("record", &self.record)
            .field("rejection", &self.rejection)
            .finish_non_exhaustive()
    }
}
