//! Operations with Powertools keys.

use lambda_idempotency_keys::external::ExternalKeys;

use super::Operation;

impl Operation {
    /// Makes keys, fingerprints and results as Powertools for AWS Lambda does, so that a table can
    /// be shared with, or taken over from, a Python or TypeScript function. Read [the page about
    /// it](crate::guide::powertools) before two functions share a table. `PowertoolsKeys` needs the
    /// feature `powertools`.
    ///
    /// [`key`](Self::key) is then Powertools' `event_key_jmespath` (`@` if Powertools has none),
    /// and [`fingerprint`](Self::fingerprint) its `payload_validation_jmespath`. Keys contain the
    /// prefix of Powertools, but neither the operation's name nor the tenant. Powertools keeps
    /// records for an hour by default: set [`retention`](Self::retention) to the same time on both
    /// sides.
    ///
    /// ```
    /// # #[cfg(feature = "powertools")]
    /// # {
    /// use lambda_idempotency::{PowertoolsKeys, Operation};
    ///
    /// let place = Operation::new("place-order")
    ///     .key("order_id")
    ///     .powertools(PowertoolsKeys::python("orders-fn.app.process"));
    /// # place.check().unwrap();
    /// # }
    /// ```
    #[must_use]
    pub fn powertools(mut self, powertools: impl ExternalKeys + 'static) -> Self {
        self.keys = self.keys.powertools(powertools);
        self.changed()
    }
}
