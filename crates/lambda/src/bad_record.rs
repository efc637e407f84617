//! What becomes of records that cannot be processed as they are.

use std::{fmt, future::Future, sync::Arc};

use lambda_idempotency_core::{
    batch::{Job, Returned},
    call::RecordId,
    clock::BoxFuture,
    failure::Failure,
    outcome::Rejection,
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
    Fail,
    /// It is put aside somewhere else, and acknowledged once it is there. Made by
    /// [`OnBadRecord::divert`].
    Divert(Sink),
}

/// Where bad records are put aside.
#[derive(Clone)]
pub struct Sink(Arc<Put>);

type Put = dyn Fn(BadRecord) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync;

/// A record that cannot be processed as it is.
#[derive(Clone)]
#[non_exhaustive]
pub struct BadRecord {
    /// The operation's name.
    pub operation: Arc<str>,
    /// Which record.
    pub record: RecordId,
    /// The record as AWS delivers it. Holds the payload: not for logs.
    pub raw: String,
    /// What is wrong with it, in words that hold no payload.
    pub rejection: Rejection,
}

impl OnBadRecord {
    /// Puts bad records aside by calling `sink`. A record is acknowledged only if that returned
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
        Self::Divert(Sink(Arc::new(move |bad| {
            let sending = sink(bad);
            Box::pin(async move { sending.await.map_err(Into::into) })
        })))
    }
}

impl Sink {
    /// The work of putting a record aside.
    pub(crate) fn job<'a>(&self, bad: BadRecord) -> Job<'a> {
        let Self(sink) = self.clone();
        Box::new(move |_| {
            Box::pin(async move {
                let rejection = bad.rejection.clone();
                sink(bad).await?;
                Ok(Returned::Diverted(rejection))
            })
        })
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
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
