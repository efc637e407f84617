//! Operations whose records can be run again where nothing delivers them again.

use super::Operation;

/// How much a claim keeps of its record by default.
pub(super) const DEFAULT_BYTES: usize = 64 * 1024;

/// # Recovery
impl Operation {
    /// Keeps each record with the claim of its key, until the key is completed or has failed permanently. If the
    /// worker dies and nothing delivers the record again, a [`Recovery`](crate::Recovery) finds it and calls
    /// the handler. Default: no, the source has to deliver it again.
    ///
    /// **The store then holds payloads**, while the work is in progress and after an attempt that failed: who may
    /// read the table may read them. See [recovery](crate::guide::recovery) for that, for the cost, and for what it
    /// does not cover. A record of more than 64 KiB is processed as always, but not kept; the log has a
    /// warning. [`recoverable_up_to`](Self::recoverable_up_to) sets another limit.
    ///
    /// # Errors
    /// When a function is built: [`optimistic`](Self::optimistic), which has no claim to keep it with, and
    /// [`mutex`](Self::mutex), where the next record of a key replaces the one that was kept. It is for event sources: the caller of [`run`](crate::Idempotency::run), of HTTP and of
    /// [`event`](crate::Idempotency::event) calls again.
    ///
    /// ```
    /// use lambda_idempotency::Operation;
    ///
    /// let place = Operation::new("place-order").key("orderId").recoverable();
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn recoverable(self) -> Self {
        self.recoverable_up_to(DEFAULT_BYTES)
    }

    /// Like [`recoverable`](Self::recoverable), with a size limit of your own, in bytes. The size is that of the whole
    /// record as JSON text. On DynamoDB,
    /// each KiB is one more write unit for the claim and one for the completion, and an item has at most
    /// 400 KB. Where an item has no room for the record, also because results of steps need it, it is processed and not
    /// kept.
    ///
    /// ```
    /// use lambda_idempotency::Operation;
    ///
    /// let place = Operation::new("place-order").key("orderId").recoverable_up_to(4 * 1024);
    /// assert_eq!(place.check(), Ok(()));
    /// ```
    #[must_use]
    pub fn recoverable_up_to(mut self, bytes: usize) -> Self {
        self.recoverable = Some(bytes);
        self.changed()
    }
}
