//! What is done once: a name, a key, and how it is treated.

mod agreement;
mod dialect;
mod filters;
mod keys;
mod misplaced;
mod policies;
mod recipe;
mod volatile;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use lambda_idempotency_core::{
    batch::{AfterFailure, Pace},
    key::{Expression, Form, KeyPath, View, dialect::Dialect, is_operation_name},
    policy::{Conflict, Lease, Policy, Remembered},
    producer::RecipeError,
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
/// The name stands for the work: it goes into every key, so two operations never share one. The name of
/// the function in AWS is not in it, but records bear that, too: see
/// [`Idempotency::application`](crate::Idempotency::application) before you rename a function.
/// Everything else has a default.
///
/// ```
/// use std::time::Duration;
/// use lambda_idempotency::{Operation, record};
///
/// // By a field of the payload:
/// let place = Operation::new("place-order").key("orderId");
/// // By several, compared to what was ordered before, remembered for three days:
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
    dialect: Option<Dialect>,
    policy: Policy,
    conflict: Option<Conflict>,
    bad_record: Option<OnBadRecord>,
    pub(crate) sink: Option<Sink>,
    // Which records, and how they are taken from the event: see `records.rs`.
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
    /// The operation with this name: 1 to 128 characters, none of them `#` or a control character.
    ///
    /// Without [`key`](Self::key) a record's own identity is its key, which catches redeliveries
    /// but not a producer that publishes twice.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            key: None,
            key_variable: None,
            keys: keys::Keys::default(),
            fingerprint: None,
            dialect: None,
            policy: Policy::default(),
            conflict: None,
            bad_record: None,
            sink: None,
            filters: Vec::new(),
            envelopes: Vec::new(),
            whole_record: false,
            order: None,
            after_failure: AfterFailure::Group,
            on_busy: None,
            prepared: Arc::default(),
        }
    }

    /// Where the idempotency key is: a JMESPath expression on the payload, or, with
    /// [`record`](crate::record), on the raw record. `[a, b]` makes a key of several parts, each of
    /// which must be there, unless it is [`optional`](Self::optional).
    ///
    /// Values count as they are written in JSON: `"42"` and `42` are two keys, and so are `1` and `1.0`, which
    /// producers in other languages tell apart. (`1.0`, `1.00` and `1e0` are one.) What an expression looks at may
    /// be nested 127 levels deep; a record that is deeper there is rejected.
    #[must_use]
    pub fn key(mut self, path: impl Into<KeyPath>) -> Self {
        self.key = Some(path.into());
        self.changed()
    }

    /// Takes the key expression from an environment variable, if that is set; else what
    /// [`key`](Self::key) says. A value that begins with `record:` is applied to the raw record. One
    /// that is set and empty is a mistake, not the same as unset. Read once, when the function starts.
    #[must_use]
    pub fn key_from_env(mut self, variable: impl Into<String>) -> Self {
        self.key_variable = Some(variable.into());
        self.changed()
    }

    /// What else must agree between two deliveries of a key. Where it differs, the later one is a
    /// [`Mismatch`](crate::Outcome::Mismatch) and goes back, instead of being answered with
    /// another's result.
    #[must_use]
    pub fn fingerprint(mut self, path: impl Into<KeyPath>) -> Self {
        self.fingerprint = Some(path.into());
        self.changed()
    }

    /// The operation's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks the operation, as wrapping a handler with it does: for
    /// [`run`](crate::Idempotency::run), which otherwise finds a mistake when it is first called.
    ///
    /// # Errors
    /// A name that cannot be used; an expression with a mistake, its place marked; a retention of
    /// zero; an environment variable that is neither set nor has a [`key`](Self::key) to fall back
    /// on; a secret that is too short; settings that exclude one another.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.prepared().map(|_| ())
    }

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
