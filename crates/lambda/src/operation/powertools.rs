//! Operations whose keys another library makes.

use lambda_idempotency_keys::foreign::ForeignKeys;

use super::Operation;

impl Operation {
    /// Makes its keys, fingerprints and results those of Powertools for AWS Lambda, so that a table
    /// can be shared with, or taken over from, a Python or TypeScript function. Read
    /// [the page about it](crate::guide::powertools) before two fleets share a table. `PowertoolsKeys` needs the
    /// feature `powertools`.
    ///
    /// [`key`](Self::key) is then Powertools' `event_key_jmespath`, `@` standing for none of it, and
    /// [`fingerprint`](Self::fingerprint) its `payload_validation_jmespath`. The operation's name and
    /// the tenant are in no key; the prefix is. Powertools keeps records for an hour:
    /// set [`retention`](Self::retention) if that is what the two agreed on.
    ///
    /// ```
    /// # #[cfg(feature = "powertools")]
    /// # {
    /// use lambda_idempotency::{PowertoolsKeys, Operation};
    ///
    /// let place = Operation::new("place-order")
    ///     .key("order_id")
    ///     .powertools(PowertoolsKeys::powertools_python("orders-fn.app.process"));
    /// # place.check().unwrap();
    /// # }
    /// ```
    #[must_use]
    pub fn powertools(mut self, powertools: impl ForeignKeys + 'static) -> Self {
        self.keys = self.keys.powertools(powertools);
        self.changed()
    }
}
