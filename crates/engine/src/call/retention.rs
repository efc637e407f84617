//! How long the completion of a call answers.

use std::time::Duration;

use super::Call;

/// # Retention
impl Call {
    /// Lets the completion of this key answer for this long, instead of the operation's retention: a quote that is valid for
    /// ten minutes, a payment link until it expires. The last call counts, and only if the handler returns `Ok`.
    ///
    /// **The operation's retention is the maximum**; a longer time is cut to it. Whoever changes a key format, rotates a
    /// secret, renames an operation or deploys another mode waits for that time, and no record outlives it. So set the
    /// operation's retention to the longest time that any of its records needs. A duplicate that comes after the
    /// shorter time is processed again. In optimistic mode a completion answers for 15 minutes at least, because until
    /// then it is what excludes an attempt whose request is still under way.
    ///
    /// [Subkeys](Self::subkey) and the ids of [messages](Self::publish) are the same when it is processed again. A system
    /// that remembers them for longer takes the new work for the old.
    ///
    /// **Not less than the time in which the work may be delivered again**: a delivery whose acknowledgement was lost runs the
    /// handler again once its key answers no longer, and commits its effects again. For a queue, that is some visibility
    /// timeouts.
    ///
    /// It has no effect on a call that [publishes](Self::publish), because its messages may have to be sent later, nor where
    /// nothing is recorded: in mutex mode, and without a claim. Released, lost and permanently
    /// failed attempts are remembered as long as the operation says.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency_engine::call::Call;
    ///
    /// # struct Quote { valid_for: Duration }
    /// async fn quote(quote: Quote, call: Call) -> Result<(), std::io::Error> {
    ///     call.retain_for(quote.valid_for);
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), std::io::Error> {
    /// // The unit test of such a handler:
    /// let call = Call::test("q-1");
    /// quote(Quote { valid_for: Duration::from_mins(10) }, call.clone()).await?;
    /// assert_eq!(call.retained_for(), Some(Duration::from_mins(10)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn retain_for(&self, retention: Duration) {
        self.shared.retain_for(retention);
    }

    /// What [`retain_for`](Self::retain_for) was called with last, for the unit test of a handler.
    #[must_use]
    pub fn retained_for(&self) -> Option<Duration> {
        self.shared.retention()
    }
}
