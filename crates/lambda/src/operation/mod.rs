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
mod filters;
mod keys;
mod misplaced;
mod recipe;
mod volatile;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use lambda_idempotency_core::policy::{Conflict, Lease, Policy, Remembered};
use lambda_idempotency_engine::batch::{AfterFailure, Pace};
use lambda_idempotency_keys::{
    Expression, Form, KeyPath, View, foreign::ForeignKeys, is_operation_name, producer::RecipeError,
};

pub(crate) use dialect::Spoken;
pub(crate) use filters::{Filter, Kind};
pub(crate) use keys::Looks;
pub(crate) use misplaced::Place;

use crate::{
    bad_record::OnBadRecord,
    busy::Hook,
    divert::Sink,
    error::ConfigError,
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
/// | the key | [`key`](Self::key), [`key_from_env`](Self::key_from_env), [`optional`](Self::optional), [`functions`](Self::functions), [`readable_keys`](Self::readable_keys), [`key_secret`](Self::key_secret), [`fingerprint`](Self::fingerprint) |
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
    name: Arc<str>,
    key: Option<KeyPath>,
    key_variable: Option<String>,
    keys: keys::Keys,
    fingerprint: Option<KeyPath>,
    dialect: Option<Arc<dyn ForeignKeys>>,
    policy: Policy,
    conflict: Option<Conflict>,
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

/// Below this, renewals would outnumber everything else.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// An operation whose expressions are compiled.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) name: Arc<str>,
    pub(crate) key: Option<Path>,
    /// The whole payload, where there is neither a key nor an identity.
    pub(crate) whole: Path,
    pub(crate) fingerprint: Option<Path>,
    /// Of the key and the fingerprint.
    pub(crate) looks: Looks,
    pub(crate) form: Form,
    /// In place of the key and the fingerprint, where keys are another library's.
    pub(crate) spoken: Option<Spoken>,
    pub(crate) policy: Policy,
    pub(crate) conflict: Option<Conflict>,
    /// Where bad records are put aside.
    pub(crate) bad_records: Option<Sink>,
    /// Where permanent failures and mismatches are put aside.
    pub(crate) sink: Option<Sink>,
    pub(crate) pace: Pace,
}

impl Prepared {
    /// Whether the operation says where its key is.
    pub(crate) const fn names_key(&self) -> bool {
        self.spoken.is_some() || self.key.is_some()
    }

    /// Which expression looks at the record around a payload, if one does.
    #[cfg(feature = "http")]
    pub(crate) fn sees_record(&self) -> Option<&'static str> {
        let fingerprint = match &self.spoken {
            Some(spoken) => spoken.fingerprint_view(),
            None => self.fingerprint.as_ref().map(|path| path.view),
        };
        let key = self.key_path().map(|path| path.view);
        let views = [("key", key), ("fingerprint", fingerprint)];
        views.into_iter().find(|(_, view)| *view == Some(View::Record)).map(|(what, _)| what)
    }

    /// Where the key is looked for; `None` is the default key.
    pub(crate) fn key_path(&self) -> Option<KeyPath> {
        let own = |path: &Path| KeyPath {
            view: path.view,
            expression: path.expression.as_str().to_owned(),
        };
        self.spoken.as_ref().map(Spoken::key_path).or_else(|| self.key.as_ref().map(own))
    }
}

/// A compiled expression and what it sees.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) view: View,
    pub(crate) expression: Expression,
}

impl Operation {
    pub(crate) fn prepared(&self) -> Result<Arc<Prepared>, ConfigError> {
        let prepare = || self.prepare().map(Arc::new).map_err(|error| self.with_variable(error));
        self.prepared.get_or_init(prepare).clone()
    }

    /// A mistake in the key, with the variable that it came from.
    fn with_variable(&self, error: ConfigError) -> ConfigError {
        match (error, &self.key_variable) {
            (ConfigError::Expression { operation, what: "key", source }, Some(variable))
                if std::env::var_os(variable).is_some() =>
            {
                ConfigError::VariableExpression { operation, variable: variable.clone(), source }
            }
            (error, _) => error,
        }
    }

    /// What was compiled before is no longer what is asked for.
    pub(crate) fn changed(mut self) -> Self {
        self.prepared = Arc::default();
        self
    }

    fn prepare(&self) -> Result<Prepared, ConfigError> {
        if !is_operation_name(&self.name) {
            return Err(RecipeError::Name { name: Arc::clone(&self.name) }.into());
        }
        if self.policy.retention.is_zero() {
            return Err(ConfigError::Retention { operation: Arc::clone(&self.name) });
        }
        if let Lease::Renewed { length } = self.policy.lease
            && length < SHORTEST_LEASE
        {
            return Err(ConfigError::Lease { operation: Arc::clone(&self.name), length });
        }
        self.functions_fit()?;
        self.check_filters()?;
        if self.sink.is_some() && self.policy.remembered == Remembered::Acknowledge {
            return Err(ConfigError::AcknowledgedAndDiverted { operation: Arc::clone(&self.name) });
        }
        let spoken = self.spoken()?;
        let own = |path: Option<KeyPath>| path.filter(|_| spoken.is_none());
        let key = own(self.key_path()?).map(|path| self.compile("key", &path)).transpose()?;
        let key = self.with_optional(key)?;
        let fingerprint = own(self.fingerprint.clone())
            .map(|path| self.compile("fingerprint", &path))
            .transpose()?;
        Ok(Prepared {
            name: Arc::clone(&self.name),
            looks: Looks::of(&[key.as_ref(), fingerprint.as_ref()]),
            form: self.form()?,
            key,
            whole: self.compile("key", &KeyPath::from("@"))?,
            fingerprint,
            spoken,
            policy: self.policy.clone(),
            conflict: self.conflict,
            bad_records: match &self.bad_record {
                Some(OnBadRecord::Fail) => None,
                Some(OnBadRecord::Divert(sink)) => Some(sink.clone()),
                None => self.sink.clone(),
            },
            sink: self.sink.clone(),
            pace: Pace::default(),
        })
    }

    fn key_path(&self) -> Result<Option<KeyPath>, ConfigError> {
        let Some(variable) = &self.key_variable else { return Ok(self.key.clone()) };
        match std::env::var(variable) {
            Ok(value) => Ok(Some(KeyPath::parse(&value))),
            Err(_) if self.key.is_some() => Ok(self.key.clone()),
            Err(_) => Err(ConfigError::Variable {
                operation: Arc::clone(&self.name),
                variable: variable.clone(),
            }),
        }
    }

    fn compile(&self, what: &'static str, path: &KeyPath) -> Result<Path, ConfigError> {
        let operation = Arc::clone(&self.name);
        let expression = match self.expression(&path.expression) {
            Ok(expression) => expression,
            Err(source) => return Err(ConfigError::Expression { operation, what, source }),
        };
        if expression.is_constant() {
            let expression = path.expression.clone();
            return Err(ConfigError::Constant { operation, what, expression });
        }
        self.tells_apart(what, path, expression.few_values())?;
        Ok(Path { view: path.view, expression })
    }

    /// Refuses a key that is one of a few values, because of `by`.
    fn tells_apart(
        &self,
        what: &str,
        path: &KeyPath,
        by: Option<&'static str>,
    ) -> Result<(), ConfigError> {
        let Some(by) = by.filter(|_| what == "key") else { return Ok(()) };
        let (operation, expression) = (Arc::clone(&self.name), path.expression.clone());
        Err(RecipeError::FewValues { operation, expression, by }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_too_short_to_be_renewed_is_refused() {
        let length = Duration::from_millis(999);
        let refused = Operation::new("place").lease(Lease::Renewed { length }).check();
        assert!(matches!(refused, Err(ConfigError::Lease { .. })), "{refused:?}");
        let length = Duration::from_secs(1);
        assert_eq!(Operation::new("place").lease(Lease::Renewed { length }).check(), Ok(()));
    }

    #[test]
    fn a_key_that_is_the_same_for_every_record_is_refused() {
        let quoted = Operation::new("place").key("'orderId'").check();
        assert!(matches!(quoted, Err(ConfigError::Constant { what: "key", .. })), "{quoted:?}");
        let quoted = Operation::new("place").key("orderId").fingerprint("`1`").check();
        assert!(matches!(quoted, Err(ConfigError::Constant { what: "fingerprint", .. })));
        assert_eq!(Operation::new("place").key("\"orderId\"").check(), Ok(()));
    }
}
