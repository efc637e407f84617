//! What happens to a delivery whose key is busy, whose handler fails, or whose store does not answer.

use std::future::Future;

use lambda_idempotency_core::{
    failure::Failure,
    policy::{Mode, OnConflict, OnFailure, OnOutage, OnPermanentFailure, OnTimeout},
};
use lambda_idempotency_engine::batch::AfterFailure;

use super::Operation;
use crate::{
    busy::{BusyRecord, Hook},
    divert::{DivertedRecord, Sink},
};

/// # Policies
///
/// With the default of each policy no record is lost: a record that was not processed returns to
/// its source, which delivers it again.
impl Operation {
    /// What happens to a delivery while another worker holds its key. The default depends on the
    /// source: [`OnConflict::Return`] for SQS, whose queue delivers the message again, and for HTTP
    /// requests, whole events and [`run`](crate::Idempotency::run), whose callers get an error;
    /// [`OnConflict::Wait`] for all other sources, which retry only a few times or deliver nothing
    /// else until they get a response.
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

    /// Calls `hook` with each record that is returned because another worker holds its key, before
    /// the function responds to the source. Default: no hook.
    ///
    /// On SQS the hook can set the message's visibility timeout to the end of the lease, so that
    /// the message is not delivered again, and not counted as received again, before it can be
    /// processed.
    ///
    /// All hooks of an invocation run concurrently. They are dropped after two seconds, or after
    /// half of the remaining time if that is shorter. A hook that fails or panics has no effect on
    /// the outcome.
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

    /// What happens to a key whose handler returned an error that is neither
    /// [`Failure::transient`](crate::Failure::transient) nor
    /// [`Failure::permanent`](crate::Failure::permanent). Default: [`OnFailure::Return`], the key
    /// is released and a later delivery calls the handler again.
    ///
    /// ```
    /// use lambda_idempotency::{OnFailure, Operation};
    ///
    /// // Every error of the handler is permanent: it is not called again for the key.
    /// let charge = Operation::new("charge").key("paymentId").on_failure(OnFailure::FailPermanently);
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.policy.on_failure = on_failure;
        self.changed()
    }

    /// What happens to a key whose handler was stopped shortly before the invocation's deadline.
    /// Its effect may still happen. Default: [`OnTimeout::Return`], a later delivery calls the
    /// handler again once the lease has expired.
    ///
    /// ```
    /// use lambda_idempotency::{OnTimeout, Operation};
    ///
    /// // A person has to find out whether the payment went out.
    /// let pay = Operation::new("pay-out").key("payoutId").on_timeout(OnTimeout::FailPermanently);
    /// assert_eq!(pay.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.policy.on_timeout = on_timeout;
        self.changed()
    }

    /// What happens to a delivery whose key has failed permanently before. Default: it is given to
    /// the sink of [`divert`](Self::divert). Without a sink it returns to its source
    /// ([`OnPermanentFailure::Return`]), which in the end moves it to its dead-letter queue.
    ///
    /// # Errors
    /// Acknowledging such deliveries and also [diverting](Self::divert) them is refused by
    /// [`check`](Self::check) and when a function is built.
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

    /// What happens to a record whose key cannot be claimed because the store does not answer.
    /// Default: [`OnOutage::Return`], it returns to its source.
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

    /// Commits the effects that the handler collects in one transaction with the completion of the key: both
    /// or neither, whatever fails. Default: no, the handler makes its effects itself.
    ///
    /// The handler collects with [`CallExt::transact`](crate::CallExt::transact), and sends nothing. What is
    /// guaranteed, and what it costs: [choosing a mode](crate::guide::choosing_a_mode).
    ///
    /// # Errors
    /// When a function is built: a store without transactions; `RunUnprotected` for
    /// [`on_outage`](Self::on_outage) or [`on_missing_key`](Self::on_missing_key), and
    /// `IDEMPOTENCY_DISABLED`, because without a claim there is no completion to commit with;
    /// [`OnConflict::Skip`], which would lose records that were returned uncommitted;
    /// [`Idempotency::event`](crate::Idempotency::event), whose service has no call.
    ///
    /// ```
    /// use lambda_idempotency::Operation;
    ///
    /// let deposit = Operation::new("deposit").key("depositId").transactional();
    /// assert_eq!(deposit.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.policy.mode = Mode::Transactional;
        self.changed()
    }

    /// The same as [`transactional`](Self::transactional), without a claim: the handler runs, and then one
    /// transaction inserts the completion together with the effects. Of several attempts for a key, one is
    /// committed; the others are answered from it. Default: no.
    ///
    /// It saves the write of the claim and its round trip. Duplicates cost more, because their handlers may
    /// run, and nothing is recorded of attempts that fail, time out or die: what a handler does *outside* of
    /// the transaction may happen again, at each attempt. When that is right:
    /// [choosing a mode](crate::guide::choosing_a_mode#optimistic-mode).
    ///
    /// # Errors
    /// What [`transactional`](Self::transactional) refuses, and settings that have no effect without a claim:
    /// [`lease`](Self::lease), [`lease_grace`](Self::lease_grace) and
    /// [`max_failed_attempts`](Self::max_failed_attempts). A [`retention`](Self::retention) of less than 15
    /// minutes: a request that arrives late could be applied after it.
    ///
    /// ```
    /// use lambda_idempotency::Operation;
    ///
    /// let deposit = Operation::new("deposit").key("depositId").optimistic();
    /// assert_eq!(deposit.check(), Ok(()));
    /// assert!(deposit.max_failed_attempts(3).check().is_err());
    /// ```
    #[must_use]
    pub fn optimistic(mut self) -> Self {
        self.policy.mode = Mode::Optimistic;
        self.changed()
    }

    /// Which records are not started after a record that returns to its source. Default:
    /// [`AfterFailure::Group`], the rest of its order group.
    ///
    /// ```
    /// use lambda_idempotency::{AfterFailure, Operation};
    ///
    /// // After a failure no later record of the batch is started, not even of other message groups.
    /// let place = Operation::new("place-order").key("orderId").after_failure(AfterFailure::Batch);
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn after_failure(mut self, after: AfterFailure) -> Self {
        self.after_failure = after;
        self
    }

    /// Makes the invocation fail if a record is returned, so that the whole batch is delivered again. Default: the
    /// answer names the records that are returned, and the source delivers only those.
    ///
    /// **A source that does not read that answer counts every record as processed**, and the returned ones are lost.
    /// Set this where the event source mapping has no `FunctionResponseTypes: [ReportBatchItemFailures]`, such as
    /// [Kafka without provisioned mode](crate::guide::sources::kafka#without-provisioned-mode). Records of the batch
    /// that were processed are answered from the store when they come again. Where the answer is read, leave the
    /// default: an error costs a delivery of every record of the batch, and a request to the store for each.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let index = Operation::new("index").topic("orders").return_whole_batch();
    /// assert_eq!(index.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn return_whole_batch(mut self) -> Self {
        self.returns_whole_batch = true;
        self
    }

    /// Gives the records that will never be processed to `sink`, so that they do not block a stream
    /// or a FIFO queue. Default: they return to their source until the source discards them or
    /// moves them to a dead-letter queue.
    ///
    /// These records are:
    ///
    /// * permanent failures: [`Failure::permanent`](crate::Failure::permanent), the last failure
    ///   that [`max_failed_attempts`](Self::max_failed_attempts) or
    ///   [`max_lost_attempts`](Self::max_lost_attempts) allows, and failures that
    ///   [`OnFailure::FailPermanently`](crate::OnFailure::FailPermanently) or
    ///   [`OnTimeout::FailPermanently`](crate::OnTimeout::FailPermanently) makes permanent.
    ///   **Without one of these, a record that fails is tried again at each delivery** and never
    ///   given to the sink;
    /// * mismatches: records whose key was used before with another
    ///   [`fingerprint`](Self::fingerprint);
    /// * bad records, unless [`on_bad_record`](Self::on_bad_record) sets another policy for them.
    ///
    /// A record is acknowledged only if `sink` returned `Ok`. Otherwise it is returned, and its
    /// next delivery calls `sink` again. After an `Ok`, the later records of its order group are
    /// processed in the same invocation.
    ///
    /// `sink` is called once for each permanent failure, however often the record is delivered
    /// within the operation's retention; twice if a worker dies in `sink`, or if the store does not
    /// record that `sink` returned. It is also called for another record with the key of a
    /// permanent failure, and for the same record with another payload, but not for a copy with the
    /// same payload in the same batch.
    ///
    /// A record that runs without a claim (because it has no key or the store was unavailable, and
    /// a policy is to run it unprotected) is given to `sink` at each delivery that fails
    /// permanently. Its failures are not counted, so neither
    /// [`max_failed_attempts`](Self::max_failed_attempts) above 1 nor a timeout makes them
    /// permanent.
    ///
    /// The outcome is [`Outcome::Diverted`](crate::Outcome::Diverted). Its log line is a warning
    /// with the reason, or an error if the outcome could not be recorded. The permanent failure
    /// stays recorded: to process the record after all, delete its item from the table before you
    /// send the record again. If its handler then fails permanently again, `sink` is called again.
    ///
    /// It is for event sources only: the callers of [`run`](crate::Idempotency::run),
    /// [`event`](crate::Idempotency::event) and HTTP requests get an error instead.
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
