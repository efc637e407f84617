//! What is done once: a name, a key, and how it is treated.
//!
//! The setters are in four files, one for each heading of the documentation, which shows them in the order
//! of these lines: `identity`, `selection`, `policies`, `limits`; `dialect` has one of its own.

// Blank lines keep `rustfmt` from sorting them.
mod identity;

mod selection;

mod policies;

mod limits;

mod dialect;

mod agreement;
mod filter;
mod filters;
mod keys;
mod misplaced;
mod prepare;
mod prepared;
mod recipe;
mod spoken;
mod volatile;

use std::sync::{Arc, OnceLock};

use lambda_idempotency_core::policy::{Conflict, Policy};
use lambda_idempotency_engine::batch::AfterFailure;
use lambda_idempotency_keys::{KeyPath, producer::Recipe};

pub(crate) use filter::Kind;
pub(crate) use misplaced::Place;
pub(crate) use prepared::{Looks, Path, Prepared};
pub(crate) use spoken::Spoken;

use filter::Filter;

use crate::{
    bad_record::OnBadRecord,
    busy::Hook,
    divert::Sink,
    error::ConfigError,
    missing_key::MissingKey,
    records::{Envelope, Order},
};

/// A piece of work that is done once per idempotency key.
///
/// The name stands for the work: it is part of every key, so that two operations never share one. The name
/// of the Lambda function is not part of it, but records carry that, too: see
/// [`Idempotency::application`](crate::Idempotency::application) before you rename a function.
///
/// Only the name is required. The settings, by what they are about:
///
/// | about | settings |
/// |---|---|
/// | the key | [`key`](Self::key), [`key_from_env`](Self::key_from_env), [`optional`](Self::optional), [`functions`](Self::functions), [`key_format`](Self::key_format), [`fingerprint`](Self::fingerprint) |
/// | which records | [`from_queue`](Self::from_queue) and other filters, [`envelope`](Self::envelope), [`whole_record`](Self::whole_record), [`on_missing_key`](Self::on_missing_key), [`on_bad_record`](Self::on_bad_record), [`order`](Self::order) |
/// | policies | [`on_conflict`](Self::on_conflict), [`on_busy`](Self::on_busy), [`on_failure`](Self::on_failure), [`on_timeout`](Self::on_timeout), [`on_remembered`](Self::on_remembered), [`on_outage`](Self::on_outage), [`after_failure`](Self::after_failure), [`divert`](Self::divert) |
/// | limits | [`retain`](Self::retain), [`lease`](Self::lease), [`skew`](Self::skew), [`grace`](Self::grace), [`concurrency`](Self::concurrency), [`max_failures`](Self::max_failures) |
///
/// A setting that has no effect where the operation is used is refused when the function is built; so is
/// every other mistake, with what to do about it.
///
/// ```
/// use std::time::Duration;
/// use lambda_idempotency::{Operation, record};
///
/// // By a field of the payload:
/// let place = Operation::new("place-order").key("orderId");
/// // By two fields; the amount has to agree between deliveries; duplicates are known for three days:
/// let charge = Operation::new("charge")
///     .key("[tenant, order.id]")
///     .fingerprint("amount")
///     .retain(Duration::from_hours(72));
/// // By the record around the payload:
/// let ship = Operation::new("ship").key(record("Sns.MessageId"));
/// # for operation in [place, charge, ship] { operation.check().unwrap(); }
/// ```
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its name, and what its keys are made of.
    keys: Recipe,
    key_variable: Option<String>,
    fingerprint: Option<KeyPath>,
    policy: Policy,
    conflict: Option<Conflict>,
    missing_key: MissingKey,
    bad_record: Option<OnBadRecord>,
    pub(crate) sink: Option<Sink>,
    filters: Vec<Filter>,
    pub(crate) envelopes: Vec<Envelope>,
    pub(crate) whole_record: bool,
    pub(crate) order: Option<Order>,
    pub(crate) after_failure: AfterFailure,
    pub(crate) on_busy: Option<Hook>,
    prepared: Arc<OnceLock<Result<Arc<Prepared>, ConfigError>>>,
}

impl Operation {
    /// Its name, to be kept.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(self.keys.name())
    }

    /// What was compiled before is no longer what is asked for.
    pub(crate) fn changed(mut self) -> Self {
        self.prepared = Arc::default();
        self
    }
}
