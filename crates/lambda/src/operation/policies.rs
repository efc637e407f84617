//! What happens to a delivery whose key is busy, whose handler fails, or whose store does not answer.

use std::future::Future;

use lambda_idempotency_core::{
    failure::Failure,
    policy::{OnConflict, OnFailure, OnOutage, OnPermanentFailure, OnTimeout},
};
use lambda_idempotency_engine::batch::AfterFailure;

use super::Operation;
use crate::{
    busy::{BusyRecord, Hook},
    divert::{DivertedRecord, Sink},
};

/// # Policies
///
/// Each policy has a default with which no record is lost: what is not done is returned to its source, which
/// delivers it again.
impl Operation {
    /// What happens to a delivery while another worker holds its key. Default: what suits the source.
    /// [`OnConflict::Return`] for SQS, whose queue delivers again, and for HTTP requests, whole events and
    /// [`run`](crate::Idempotency::run), whose callers are told; [`OnConflict::Wait`] for all other sources,
    /// which have few retries or stand still meanwhile.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::{OnConflict, Operation};
    ///
    /// let up_to = Duration::from_secs(5);
    /// let charge = Operation::new("charge").key("paymentId").on_conflict(OnConflict::Wait { up_to });
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_conflict(mut self, policy: OnConflict) -> Self {
        self.on_conflict = Some(policy);
        self.changed()
    }

    /// Calls `hook` with each record that is returned because another worker holds its key, before the
    /// source is told. Default: no hook.
    ///
    /// On SQS the hook can set the message's visibility timeout to the end of the lease, so that the
    /// message does not come again, and is not counted as received again, before it can be processed.
    ///
    /// All hooks of an invocation run side by side. They are dropped after two seconds, or after half of
    /// the time that is left if that is shorter. A hook that fails or panics changes nothing.
    ///
    /// ```
    /// use lambda_idempotency::{BusyRecord, Operation};
    ///
    /// async fn hide(busy: BusyRecord) {
    ///     let seconds = busy.wait.as_secs() + 1;
    ///     // sqs.change_message_visibility().receipt_handle(..).visibility_timeout(seconds)
    /// }
    /// let place = Operation::new("place-order").key("orderId").on_busy(hide);
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_busy<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(BusyRecord) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.on_busy = Some(Hook::new(hook));
        self
    }

    /// What happens to a key whose handler returned an error that does not say itself, as a
    /// [`Failure`](crate::Failure) can. Default: [`OnFailure::Return`], the key is free and a later
    /// delivery calls the handler again.
    ///
    /// ```
    /// use lambda_idempotency::{OnFailure, Operation};
    ///
    /// // An error of the handler is its answer; it is not called again for the key.
    /// let charge = Operation::new("charge").key("paymentId").on_failure(OnFailure::FailPermanently);
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.policy.on_failure = on_failure;
        self.changed()
    }

    /// What happens to a key whose handler was stopped shortly before the invocation's deadline. Its
    /// effect may be on its way all the same. Default: [`OnTimeout::Return`], a later delivery calls the
    /// handler again once the lease has ended.
    ///
    /// ```
    /// use lambda_idempotency::{OnTimeout, Operation};
    ///
    /// // Whether the payment went out is for a person to find out.
    /// let pay = Operation::new("pay-out").key("payoutId").on_timeout(OnTimeout::FailPermanently);
    /// assert_eq!(pay.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.policy.on_timeout = on_timeout;
        self.changed()
    }

    /// What happens to a delivery whose key has failed permanently before. Default: it is given to the sink
    /// of [`divert`](Self::divert), or returned to its source if there is none
    /// ([`OnPermanentFailure::Return`]), whose dead-letter queue then gets it.
    ///
    /// # Errors
    /// Refused by [`check`](Self::check) and when a function is built: to acknowledge such deliveries and
    /// to [`divert`](Self::divert) them.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, OnPermanentFailure};
    ///
    /// let notify = Operation::new("notify").key("id").on_permanent_failure(OnPermanentFailure::Acknowledge);
    /// assert_eq!(notify.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_permanent_failure(mut self, policy: OnPermanentFailure) -> Self {
        self.policy.on_permanent_failure = policy;
        self.changed()
    }

    /// What happens to a record while the store does not answer, so that its key cannot be claimed.
    /// Default: [`OnOutage::Return`], it is returned to its source.
    ///
    /// ```
    /// use lambda_idempotency::{OnOutage, Operation};
    ///
    /// // A second notification is better than none.
    /// let notify = Operation::new("notify").key("id").on_outage(OnOutage::RunUnprotected);
    /// assert_eq!(notify.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.policy.on_outage = on_outage;
        self.changed()
    }

    /// What is not started any more after a record that is returned to its source. Default:
    /// [`AfterFailure::Group`], the rest of its order group.
    ///
    /// ```
    /// use lambda_idempotency::{AfterFailure, Operation};
    ///
    /// // After a failure no record of the batch is started, not even of other message groups.
    /// let place = Operation::new("place-order").key("orderId").after_failure(AfterFailure::Batch);
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn after_failure(mut self, after: AfterFailure) -> Self {
        self.after_failure = after;
        self
    }

    /// Gives the records that will never be processed to `sink`, so that nothing waits behind them in a
    /// stream or a FIFO queue. Default: they are returned to their source until it gives them up.
    ///
    /// These records are:
    ///
    /// * permanent failures: [`Failure::permanent`](crate::Failure::permanent), the last failure that
    ///   [`max_failed_attempts`](Self::max_failed_attempts) allows, and what
    ///   [`OnFailure::FailPermanently`](crate::OnFailure::FailPermanently) and
    ///   [`OnTimeout::FailPermanently`](crate::OnTimeout::FailPermanently) make permanent. **Without one of these a record that
    ///   fails is tried again for ever** and never given to the sink;
    /// * mismatches: records whose key was used before with another
    ///   [`fingerprint`](Self::fingerprint);
    /// * bad records, unless [`on_bad_record`](Self::on_bad_record) says something else about them.
    ///
    /// A record is acknowledged only if `sink` returned `Ok`. Otherwise it is returned, and its next
    /// delivery calls `sink` again. After an `Ok`, what waits for the record in its order group goes on in
    /// the same invocation.
    ///
    /// `sink` is called once for each permanent failure, however often the record is delivered within the
    /// operation's retention; twice if a worker dies in `sink`, or if the store does not record that it is
    /// done. It is also called for another record with the key of a permanent failure, and for the same
    /// record with another payload, but not for a copy with the same payload in the same batch.
    ///
    /// A record that ran without a claim (it has no key, or the store was out of reach, and a policy says to
    /// run it all the same) is given to `sink` at each delivery that fails permanently. Its failures are not
    /// counted, so neither [`max_failed_attempts`](Self::max_failed_attempts) above 1 nor a timeout makes them permanent.
    ///
    /// The outcome is [`Outcome::Diverted`](crate::Outcome::Diverted). Its line in the log is a warning that
    /// says why, or an error if it could not be recorded. The permanent failure stays recorded: to process
    /// the record after all, delete its item from the table before you send it again. If its handler then
    /// fails permanently again, `sink` is called again.
    ///
    /// It is for event sources: [`run`](crate::Idempotency::run), [`event`](crate::Idempotency::event) and
    /// HTTP requests have callers, who are told.
    ///
    /// ```
    /// use lambda_idempotency::{DivertedRecord, Failure, Operation};
    ///
    /// async fn send_to_queue(diverted: DivertedRecord) -> Result<(), Failure> {
    ///     // sqs.send_message().queue_url(..).message_body(diverted.raw).send().await?;
    ///     Ok(())
    /// }
    /// let index = Operation::new("index").max_failed_attempts(3).divert(send_to_queue);
    /// assert_eq!(index.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn divert<F, Fut, E>(mut self, sink: F) -> Self
    where
        F: Fn(DivertedRecord) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure>,
    {
        self.sink = Some(Sink::new(sink));
        self.changed()
    }
}
