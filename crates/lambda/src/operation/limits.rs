//! Limits of time, attempts and concurrency.

use std::time::Duration;

use lambda_idempotency_core::policy::Lease;

use super::Operation;

/// # Limits
impl Operation {
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
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.policy.retention = retention;
        self.changed()
    }

    /// How long a claim holds its key, and so how long other workers wait if its worker dies.
    /// Default: [`Lease::Invocation`], until the invocation ends.
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
    /// use lambda_idempotency::{Lease, Operation};
    ///
    /// let length = Duration::from_secs(30);
    /// let export = Operation::new("export").key("exportId").lease(Lease::Renewed { length });
    /// assert_eq!(export.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.policy.lease = lease;
        self.changed()
    }

    /// By how much the clocks of two workers may differ. A worker takes over a key only when this
    /// time has passed since the end of its lease. Default: 1 second. More than an hour is refused when a function is
    /// built.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::Operation;
    ///
    /// // Workers outside Lambda, on machines whose clocks are synchronised once a day.
    /// let export = Operation::new("export").key("exportId").clock_skew(Duration::from_secs(5));
    /// assert_eq!(export.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn clock_skew(mut self, allowance: Duration) -> Self {
        self.policy.clock_skew = allowance;
        self.changed()
    }

    /// The time from the invocation's deadline to the end of its leases. Default: 1 second, because
    /// Lambda may stop a function some tenths of a second late. More than an hour is refused when a function is built.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency::Operation;
    ///
    /// let export = Operation::new("export").key("exportId").lease_grace(Duration::from_secs(2));
    /// assert_eq!(export.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn lease_grace(mut self, lease_grace: Duration) -> Self {
        self.policy.lease_grace = lease_grace;
        self.changed()
    }

    /// How many handlers run concurrently for the records of one batch, or the payloads of
    /// [`run_many`](crate::Idempotency::run_many); 0 counts as 1. Default: 16.
    /// Records of one order group run one after another in any case. Handlers that compute should not
    /// be more than the function has processors: see
    /// [the guide](crate::guide::failure_modes#handlers-that-compute-or-block).
    ///
    /// ```
    /// # use lambda_idempotency::Operation;
    /// // One at a time: each handler needs most of the function's memory.
    /// let resize = Operation::new("resize").concurrency(1);
    /// assert_eq!(resize.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.policy.concurrency = handlers;
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
    #[must_use]
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
    #[must_use]
    pub fn max_lost_attempts(mut self, most: u32) -> Self {
        self.policy.max_lost_attempts = Some(most);
        self.changed()
    }
}
