//! How the key of an [`Operation`] is held, and what happens to work that is not done.

use std::time::Duration;

use lambda_idempotency_core::policy::{Lease, Mode, OnConflict, OnOutage, OnTimeout};

use super::Operation;

/// # Policies
///
/// With the default of each policy no record is lost: a record that was not processed returns to its source.
impl Operation {
    /// How keys are held, and what is kept of an attempt. Default: [`Mode::Claim`]. Guarantees and cost of each:
    /// [choosing a mode](crate::guide::choosing_a_mode).
    ///
    /// * [`Mode::Claim`]: the key is claimed, the handler makes its effects itself, and its completion is recorded.
    /// * [`Mode::Transactional`]: the handler collects effects with [`CallExt::transact`](crate::CallExt::transact) or
    ///   `execute`, which are committed in one transaction with the completion of the key: both or neither, whatever
    ///   fails.
    /// * [`Mode::Optimistic`]: the same without a claim. It saves the claim's write and its round trip. Duplicates cost
    ///   more, because their handlers may run, and nothing is recorded of attempts that fail, time out or die.
    /// * [`Mode::Mutex`]: keys exclude each other, and nothing more: **each delivery calls the handler**, and no two
    ///   handlers of a key run at the same time. For work that must not overlap but may be repeated, such as a nightly
    ///   import; the key names what is protected, not the record.
    ///
    /// All uses of a name have the same mode. Give an operation that becomes a mutex a new name: a key that was
    /// completed before is answered from its completion until that expires.
    ///
    /// # Errors
    /// When a function is built, and by [`check`](Self::check):
    ///
    /// * with effects: a store without transactions; `RunUnprotected` for [`on_outage`](Self::on_outage) or
    ///   [`on_missing_key`](Self::on_missing_key), and `IDEMPOTENCY_DISABLED`, because without a claim there is no
    ///   completion to commit with;
    /// * without a claim: [`lease`](Self::lease), [`max_failed_attempts`](Self::max_failed_attempts) and
    ///   [`max_lost_attempts`](Self::max_lost_attempts), which have no effect; a [`retention`](Self::retention) of
    ///   less than 15 minutes, because a request that arrives late could be applied after it; records that are kept for [recovery](crate::source::Sqs::recoverable);
    /// * for a mutex: no [`key`](Self::key), because each record would have its own; [`retention`](Self::retention),
    ///   [`result_retention`](Self::result_retention), [`fingerprint`](Self::fingerprint), [`on_timeout`](Self::on_timeout),
    ///   [`max_failed_attempts`](Self::max_failed_attempts) and [`max_lost_attempts`](Self::max_lost_attempts), which
    ///   have no effect; records that are kept for [recovery](crate::source::Sqs::recoverable), because the next
    ///   record of a key replaces them.
    ///
    /// ```
    /// use lambda_idempotency::{Mode, Operation};
    ///
    /// let deposit = Operation::new("deposit").key("depositId").mode(Mode::Transactional);
    /// assert_eq!(deposit.check(), Ok(()));
    /// // One import of a tenant at a time.
    /// let import = Operation::new("import").key("tenant").mode(Mode::Mutex);
    /// assert_eq!(import.check(), Ok(()));
    /// assert!(import.max_failed_attempts(3).check().is_err());
    /// ```
    pub fn mode(mut self, mode: Mode) -> Self {
        self.policy.mode = mode;
        self.changed()
    }

    /// How long a completion or a permanent failure answers later deliveries of its key, rounded up
    /// to a whole second. Default: 24 hours.
    ///
    /// **A duplicate that arrives later is processed again.** Choose the longest time between two
    /// deliveries of the same work. 24 hours cover Lambda's own retries of an asynchronous event,
    /// which end after 6 hours. A queue keeps messages for 4 days by default and for 14 at most.
    /// That time begins again in a dead-letter queue that is FIFO, and after a redrive. If you redrive, set
    /// a retention that covers it all, and a [`key`](Self::key) from the payload, because a redriven
    /// message has another id. A longer retention costs storage: one item for each key.
    ///
    /// # Errors
    /// Zero is refused by [`check`](Self::check) and when a function is built.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::Operation;
    ///
    /// // A queue and a dead-letter queue that each keep messages for 14 days.
    /// let place = Operation::new("place-order").key("orderId").retention(Duration::from_hours(24 * 28));
    /// assert_eq!(place.check(), Ok(()));
    /// assert!(Operation::new("place-order").retention(Duration::ZERO).check().is_err());
    /// ```
    pub fn retention(mut self, retention: Duration) -> Self {
        self.policy.retention = retention;
        self.changed()
    }

    /// How long a duplicate is answered with the *result*, counted from when the work was done. After that the key still
    /// answers: the work is not done again, and the duplicate is answered as if the result had not been kept
    /// ([`ResultLost::NotKept`](crate::error::ResultLost::NotKept) from [`run`](crate::Idempotency::run) and
    /// [`kept_result`](crate::Idempotency::kept_result)). Default: as long as the key answers; a time
    /// that is not shorter than the [`retention`](Self::retention) is refused.
    ///
    /// For results that must not be given for as long as duplicates have to be recognised, such as a response with a
    /// session cookie. It is compared when a duplicate is answered, so a change applies to the records that are
    /// there. **The result stays in the store** until its record is deleted: no store deletes a part of a record.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::Operation;
    ///
    /// // Duplicates are recognised for 14 days, and answered with the result for 10 minutes.
    /// let sign_in = Operation::new("sign-in")
    ///     .key("requestId")
    ///     .retention(Duration::from_hours(24 * 14))
    ///     .result_retention(Duration::from_mins(10));
    /// assert_eq!(sign_in.check(), Ok(()));
    /// ```
    pub fn result_retention(mut self, retention: Duration) -> Self {
        self.policy.result_retention = Some(retention);
        self.changed()
    }

    /// How long a claim holds its key, and so how long other workers wait if its worker dies.
    /// Default: [`Lease::Invocation`], until a second after the invocation's deadline, because Lambda may stop a function
    /// some tenths of a second late. Another worker takes the key over one more second later, by which clocks may differ.
    ///
    /// [`Lease::Renewed`] is for functions with timeouts of many minutes. It costs one write to the
    /// store for each third of its length; handlers that finish within a third cost nothing.
    ///
    /// # Errors
    /// A renewed lease of less than 1 second or more than 24 hours is refused by [`check`](Self::check) and when a
    /// function is built.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::{Operation, policy::Lease};
    ///
    /// let length = Duration::from_secs(30);
    /// let export = Operation::new("export").key("exportId").lease(Lease::Renewed { length });
    /// assert_eq!(export.check(), Ok(()));
    /// ```
    pub fn lease(mut self, lease: Lease) -> Self {
        self.policy.lease = lease;
        self.changed()
    }

    /// The treatment of a delivery while another worker holds its key. The default depends on the
    /// source: [`OnConflict::Return`] for SQS, whose queue delivers the message again (also to a pipe), and for HTTP
    /// requests and [`run`](crate::Idempotency::run), whose callers get an error;
    /// [`OnConflict::Wait`] for all other sources, which retry only a few times or deliver nothing
    /// else until they get a response.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::{Operation, policy::OnConflict};
    ///
    /// let up_to = Duration::from_secs(5);
    /// let charge = Operation::new("charge").key("paymentId").on_conflict(OnConflict::Wait { up_to });
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    pub fn on_conflict(mut self, policy: OnConflict) -> Self {
        self.on_conflict = Some(policy);
        self.changed()
    }

    /// The treatment of a key whose handler was stopped shortly before the invocation's deadline.
    /// Its effect may still happen. Default: [`OnTimeout::Return`], a later delivery calls the
    /// handler again once the lease has expired.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, policy::OnTimeout};
    ///
    /// // A person has to find out whether the payment went out.
    /// let pay = Operation::new("pay-out").key("payoutId").on_timeout(OnTimeout::FailPermanently);
    /// assert_eq!(pay.check(), Ok(()));
    /// ```
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.policy.on_timeout = on_timeout;
        self.changed()
    }

    /// The treatment of a record whose key cannot be claimed because the store does not answer.
    /// Default: [`OnOutage::Return`], it returns to its source.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, policy::OnOutage};
    ///
    /// // A second notification is better than none.
    /// let notify = Operation::new("notify").key("id").on_outage(OnOutage::RunUnprotected);
    /// assert_eq!(notify.check(), Ok(()));
    /// ```
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.policy.on_outage = on_outage;
        self.changed()
    }

    /// After how many failed attempts a key fails permanently, so that its handler is not called again; 0
    /// counts as 1, the first failure. Default: no limit, the source decides how often it delivers.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let charge = Operation::new("charge").key("paymentId").max_failed_attempts(3);
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    pub fn max_failed_attempts(mut self, most: u32) -> Self {
        self.policy.max_failed_attempts = Some(most);
        self.changed()
    }

    /// After how many lost attempts in a row a key fails permanently, so that its handler is not called again; 0 counts
    /// as 1. An attempt is lost if its worker was killed, lost the store, or dropped the call of
    /// [`run`](crate::Idempotency::run); an attempt that fails, or is stopped at its deadline, ends the row. Default: no limit,
    /// the source decides how often it delivers.
    ///
    /// For work that ends its process each time: a call of `run` has no [quarantine](crate::guide::failure_modes#quarantine)
    /// beside it, and nothing but its caller limits how often it is made. **For sources with batches choose at least 3, and at
    /// least 6 on Managed Instances**: records that came with one that kills are lost with it, up to so often.
    ///
    /// The delivery that finds so many losses is `failed`, with an error of the type `lost attempts`; later ones are
    /// `permanently_failed`.
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// let charge = Operation::new("charge").key("paymentId").max_lost_attempts(3);
    /// assert_eq!(charge.check(), Ok(()));
    /// ```
    pub fn max_lost_attempts(mut self, most: u32) -> Self {
        self.policy.max_lost_attempts = Some(most);
        self.changed()
    }
}
