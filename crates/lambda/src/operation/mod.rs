//! [`Operation`]: work that is done once, with its name, its key and its policies.

// The documentation shows the settings in this order; the blank line keeps `rustfmt` from sorting them.
mod keys;

mod policies;

pub(crate) mod prepare;
mod prepared;

use std::sync::{Arc, OnceLock};

use lambda_idempotency_core::policy::{OnConflict, Policy};
use lambda_idempotency_keys::{KeyPath, producer::KeySpec};
pub use prepared::OnMissingKey;
pub(crate) use prepared::{Prepared, ReadFields};

use crate::error::ConfigError;

/// A piece of work that is done once per idempotency key, wherever it comes from: event sources, [HTTP
/// requests](crate::Idempotency::http) and calls of [`run`](crate::Idempotency::run).
///
/// The name identifies the work. It is part of every key, so two operations never share a key. The
/// name of the Lambda function is not part of the key, but each idempotency record contains it:
/// read [`Idempotency::application`](crate::Idempotency::application) before you rename a function.
///
/// Only the name is required. Every setting has an effect at every entry point; what only an event source has, such as
/// filters and envelopes, is set on the [source](crate::source).
///
/// | about | settings |
/// |---|---|
/// | the key | [`key`](Self::key), [`fingerprint`](Self::fingerprint), [`on_missing_key`](Self::on_missing_key), [`key_fn`](Self::key_fn), [`key_format`](Self::key_format), [`powertools`](Self::powertools) |
/// | how a key is held | [`mode`](Self::mode), [`retention`](Self::retention), [`result_retention`](Self::result_retention), [`lease`](Self::lease) |
/// | what happens if it is not processed | [`on_conflict`](Self::on_conflict), [`on_timeout`](Self::on_timeout), [`on_outage`](Self::on_outage), [`max_failed_attempts`](Self::max_failed_attempts), [`max_lost_attempts`](Self::max_lost_attempts) |
///
/// A mistake is refused when a function is built, and by [`check`](Self::check). The error says what to do.
///
/// ```
/// use std::time::Duration;
/// use lambda_idempotency::Operation;
///
/// // By a field of the payload:
/// let place = Operation::new("place-order").key("orderId");
/// // By two fields; the amount has to agree; duplicates are recognised for three days:
/// let charge = Operation::new("charge")
///     .key("[tenant, order.id]")
///     .fingerprint("amount")
///     .retention(Duration::from_hours(72));
/// # for operation in [place, charge] { operation.check().unwrap(); }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Operation {
    /// Its name and its key specification.
    keys: KeySpec,
    fingerprint: Option<KeyPath>,
    policy: Policy,
    on_conflict: Option<OnConflict>,
    on_missing_key: OnMissingKey,
    /// Compiled without a source's settings, at the first use.
    prepared: Arc<OnceLock<Result<Arc<Prepared>, ConfigError>>>,
}

impl Operation {
    /// An operation with these keys, and every other setting at its default.
    fn of(keys: KeySpec) -> Self {
        Self {
            keys,
            fingerprint: None,
            policy: Policy::default(),
            on_conflict: None,
            on_missing_key: OnMissingKey::Return,
            prepared: Arc::default(),
        }
    }

    /// With the key at this place.
    #[cfg(feature = "http")]
    pub(crate) fn with_path(&self, path: KeyPath) -> Self {
        let new = Self { keys: self.keys.clone().with_path(path), ..self.clone() };
        new.changed()
    }

    /// Discards what was compiled, because a setting has changed.
    fn changed(mut self) -> Self {
        self.prepared = Arc::default();
        self
    }
}
