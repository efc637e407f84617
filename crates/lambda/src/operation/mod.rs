//! [`Operation`]: work that is done once, with its name, its key and its policies.
//!
//! The setters are in one file for each heading of the documentation, which shows them in the order
//! of these modules: `identity`, `selection`, `policies`, `limits`, `powertools`.

// Blank lines keep `rustfmt` from sorting them.
mod identity;

mod selection;

mod policies;

mod limits;

mod powertools;

mod agreement;
mod compiled_powertools;
mod filter;
mod filters;
mod key_spec;
mod keys;
mod misplaced;
mod mode;
mod mutex;
mod prepare;
mod prepared;
mod recoverable;
mod several;
mod transaction;
mod volatile;

use std::sync::{Arc, OnceLock};

use lambda_idempotency_core::policy::{OnConflict, Policy};
use lambda_idempotency_engine::batch::AfterFailure;
use lambda_idempotency_keys::{KeyPath, producer::KeySpec};

pub(crate) use compiled_powertools::CompiledPowertools;
pub(crate) use filter::Kind;
pub(crate) use misplaced::EntryPoint;
pub(crate) use mode::modes_agree;
pub(crate) use prepared::{FieldSets, Path, Prepared};

use filter::Filter;

use crate::{
    bad_record::OnBadRecord, busy::Hook, divert::Sink, envelope::Envelope, error::ConfigError,
    keep_order::KeepOrder, on_missing_key::OnMissingKey,
};

/// A piece of work that is done once per idempotency key.
///
/// The name identifies the work. It is part of every key, so two operations never share a key. The
/// name of the Lambda function is not part of the key, but each idempotency record contains it:
/// read [`Idempotency::application`](crate::Idempotency::application) before you rename a function.
///
/// Only the name is required. The settings, by topic:
///
/// | about | settings |
/// |---|---|
/// | the key | [`key`](Self::key), [`key_from_env`](Self::key_from_env), [`optional`](Self::optional), [`key_functions`](Self::key_functions), [`key_format`](Self::key_format), [`fingerprint`](Self::fingerprint) |
/// | which records | [`queue`](Self::queue) and other filters, [`envelope`](Self::envelope), [`whole_record`](Self::whole_record), [`on_missing_key`](Self::on_missing_key), [`on_bad_record`](Self::on_bad_record), [`order`](Self::order) |
/// | policies | [`on_conflict`](Self::on_conflict), [`on_busy`](Self::on_busy), [`on_failure`](Self::on_failure), [`on_timeout`](Self::on_timeout), [`on_permanent_failure`](Self::on_permanent_failure), [`on_outage`](Self::on_outage), [`transactional`](Self::transactional), [`optimistic`](Self::optimistic), [`mutex`](Self::mutex), [`recoverable`](Self::recoverable), [`after_failure`](Self::after_failure), [`return_whole_batch`](Self::return_whole_batch), [`divert`](Self::divert) |
/// | limits | [`retention`](Self::retention), [`lease`](Self::lease), [`clock_skew`](Self::clock_skew), [`lease_grace`](Self::lease_grace), [`concurrency`](Self::concurrency), [`max_failed_attempts`](Self::max_failed_attempts), [`max_lost_attempts`](Self::max_lost_attempts) |
///
/// A setting that has no effect where the operation is used is refused when the function is built,
/// like every other mistake. The error says what to do.
///
/// ```
/// use std::time::Duration;
/// use lambda_idempotency::{Operation, record};
///
/// // By a field of the payload:
/// let place = Operation::new("place-order").key("orderId");
/// // By two fields; the amount has to agree; duplicates are recognised for three days:
/// let charge = Operation::new("charge")
///     .key("[tenant, order.id]")
///     .fingerprint("amount")
///     .retention(Duration::from_hours(72));
/// // By the record around the payload:
/// let ship = Operation::new("ship").key(record("Sns.MessageId"));
/// # for operation in [place, charge, ship] { operation.check().unwrap(); }
/// ```
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its name and its key specification.
    keys: KeySpec,
    key_variable: Option<String>,
    fingerprint: Option<KeyPath>,
    policy: Policy,
    on_conflict: Option<OnConflict>,
    on_missing_key: OnMissingKey,
    bad_record: Option<OnBadRecord>,
    pub(crate) sink: Option<Sink>,
    filters: Vec<Filter>,
    pub(crate) envelopes: Vec<Envelope>,
    pub(crate) whole_record: bool,
    pub(crate) order: Option<KeepOrder>,
    pub(crate) after_failure: AfterFailure,
    /// Whether the invocation fails if a record is returned.
    pub(crate) returns_whole_batch: bool,
    pub(crate) on_busy: Option<Hook>,
    /// The most bytes that a claim keeps of its record, if it keeps it.
    pub(crate) recoverable: Option<usize>,
    prepared: Arc<OnceLock<Result<Arc<Prepared>, ConfigError>>>,
}

impl Operation {
    /// Its name, shared.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(self.keys.name())
    }

    /// Discards what was compiled, because a setting has changed.
    pub(crate) fn changed(mut self) -> Self {
        self.prepared = Arc::default();
        self
    }
}
