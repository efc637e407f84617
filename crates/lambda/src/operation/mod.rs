//! [`Operation`]: work that is done once, with its name, its key and its policies; how it is compiled, for a source or
//! alone; and which ones cannot work.

mod settings;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use lambda_idempotency_core::policy::{Lease, Mode, OnConflict, OnOutage, Policy};
use lambda_idempotency_engine::batch::{Engine, Job, Pace, Returned};
use lambda_idempotency_keys::{
    Expression, FieldSet, KeyFormat, KeyPath, View,
    producer::{Compiled, KeySpec, Selector},
};

use crate::{error::ConfigError, source::Settings};

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

/// An operation whose expressions are compiled.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) name: Arc<str>,
    pub(crate) key: Option<Selector>,
    /// The whole payload, used if there is neither a key nor an identity.
    pub(crate) whole: Selector,
    pub(crate) fingerprint: Option<Selector>,
    /// The fields that the key and the fingerprint read.
    pub(crate) field_sets: ReadFields,
    pub(crate) key_format: KeyFormat,
    /// With `on_conflict`, if that is set.
    pub(crate) policy: Policy,
    /// For sources, which have defaults of their own.
    pub(crate) on_conflict: Option<OnConflict>,
    pub(crate) on_missing_key: OnMissingKey,
    pub(crate) pace: Pace,
}

impl Prepared {
    /// Whether the operation has a key of its own.
    pub(crate) const fn names_key(&self) -> bool {
        self.key.is_some()
    }

    /// Whether it makes keys as Powertools does.
    pub(crate) fn is_of_powertools(&self) -> bool {
        self.key.as_ref().is_some_and(Selector::is_of_powertools)
    }

    /// Whether the key or the fingerprint is read from the payload, as JSON.
    pub(crate) fn reads_payload(&self) -> bool {
        let mut selectors = self.key.iter().chain(&self.fingerprint);
        selectors.any(|selector| selector.view == View::Payload && selector.reads_json())
    }

    /// The key's expression and what it is applied to; `None` for the default key.
    pub(crate) fn key_path(&self) -> Option<KeyPath> {
        self.key.as_ref().map(|key| KeyPath::new(key.view, &*key.text))
    }

    /// A handler whose result is kept as the library whose keys these are keeps it.
    pub(crate) fn keeping<'j>(&'j self, job: Job<'j>) -> Job<'j> {
        if !self.is_of_powertools() {
            return job;
        }
        Box::new(move |call| {
            let running = job(call);
            Box::pin(async move {
                Ok(match running.await? {
                    Returned::Value(json) => Returned::Value(self.kept(json.to_string()).into()),
                    other => other,
                })
            })
        })
    }

    /// A result as the library whose keys these are keeps it.
    pub(crate) fn kept(&self, json: String) -> String {
        match &self.key {
            Some(key) => key.result(json),
            None => json,
        }
    }
}

/// The fields that expressions read: in the payload, and in the record around it.
#[derive(Debug)]
pub(crate) struct ReadFields([FieldSet; 2]);

impl ReadFields {
    fn of(selectors: &[Option<&Selector>]) -> Self {
        let reads = |view| {
            let selectors = selectors.iter().flatten().filter(|selector| selector.view == view);
            FieldSet::of(selectors.filter_map(|selector| selector.expression()))
        };
        Self([reads(View::Payload), reads(View::Record)])
    }

    pub(crate) const fn at(&self, view: View) -> &FieldSet {
        let [payload, record] = &self.0;
        match view {
            View::Payload => payload,
            View::Record => record,
        }
    }
}

/// The treatment of a record in which the key expression finds no key or, without an expression, that has no default key.
///
/// None is acknowledged without a call of the handler, since a mistake in the expression would lose them all. Records that
/// are not for this function are left out by the event source mapping (`FilterCriteria`), the subscription or the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// The record fails and returns to its source; a caller gets an error.
    #[default]
    Return,
    /// The handler runs, without protection against duplicates.
    RunUnprotected,
}

/// With a shorter lease, most writes to the store would be renewals.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// The key of a worker that died stays held for the lease.
const LONGEST_LEASE: Duration = Duration::from_hours(24);

impl Operation {
    /// The operation without a source.
    pub(crate) fn prepared(&self) -> Result<Arc<Prepared>, ConfigError> {
        let prepare = || self.prepared_for(&Settings::default()).map(Arc::new);
        self.prepared.get_or_init(prepare).clone()
    }

    /// The operation as a source with these settings has it.
    pub(crate) fn prepared_for(&self, source: &Settings) -> Result<Prepared, ConfigError> {
        let name = self.name();
        if self.policy.retention.is_zero() {
            return Err(ConfigError::setting(format!(
                "operation `{name}` has a retention of zero; give `.retention(..)` the time for which duplicates are to be \
                 recognised"
            )));
        }
        if self.policy.result_retention.is_some_and(|most| most >= self.policy.retention) {
            return Err(ConfigError::setting(format!(
                "operation `{name}` answers with results for as long as its keys answer, so `.result_retention(..)` has no \
                 effect; give it less time than `.retention(..)`, or remove it"
            )));
        }
        self.check_lease()?;
        self.check_mode(source)?;
        let Compiled { operation, key_format, key, fingerprint, .. } = self.compiled(source)?;
        let mut policy = self.policy.clone();
        policy.on_conflict = self.on_conflict.unwrap_or(policy.on_conflict);
        policy.concurrency = source.concurrency.unwrap_or(policy.concurrency);
        Ok(Prepared {
            name: operation,
            field_sets: ReadFields::of(&[key.as_ref(), fingerprint.as_ref()]),
            key_format,
            key,
            whole: whole()?,
            fingerprint,
            policy,
            on_conflict: self.on_conflict,
            on_missing_key: self.on_missing_key,
            pace: Pace::default(),
        })
    }

    fn check_lease(&self) -> Result<(), ConfigError> {
        match self.policy.lease {
            Lease::Renewed { length } if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&length) => {
                Err(ConfigError::setting(format!(
                    "operation `{}` has {length:?} as its `.lease(..)`, which may have {} s to {} s: a shorter lease would \
                     be renewed all the time, and with a longer one the key of a worker that has died stays held",
                    self.name(),
                    SHORTEST_LEASE.as_secs(),
                    LONGEST_LEASE.as_secs()
                )))
            }
            _ => Ok(()),
        }
    }

    fn compiled(&self, source: &Settings) -> Result<Compiled, ConfigError> {
        let spec = match &source.key {
            Some(path) => self.keys.clone().with_path(path.clone()),
            None => self.keys.clone(),
        };
        let fingerprint = source.fingerprint.as_ref().or(self.fingerprint.as_ref());
        Ok(spec.compile(fingerprint)?)
    }

    /// The setting that makes the keys of two sources of one operation differ always, if there is one.
    pub(crate) fn differs(&self, other: &Self) -> Option<&'static str> {
        if self.keys.powertools_settings() != other.keys.powertools_settings() {
            Some("powertools")
        } else if self.keys.has_function() != other.keys.has_function() {
            Some("key_fn")
        } else {
            None
        }
    }

    /// The secret that keys are made with, if there is one.
    pub(crate) const fn secret(&self) -> Option<&lambda_idempotency_keys::Secret> {
        self.keys.secret()
    }
}

/// The whole payload.
fn whole() -> Result<Selector, ConfigError> {
    let expression =
        Expression::compile("@").map_err(|problem| ConfigError::key(problem.to_string()))?;
    Ok(Selector::of(View::Payload, expression))
}

impl Operation {
    /// Refuses settings that have no effect in this mode, or that would lose what it promises.
    fn check_mode(&self, source: &Settings) -> Result<(), ConfigError> {
        let mode = self.policy.mode;
        let problem = match mode {
            Mode::Transactional => self.unprotected(),
            Mode::Optimistic => self.unprotected().or_else(|| self.without_a_claim(source)),
            Mode::Mutex => self.without_a_completion(source),
            _ => None,
        };
        match problem {
            None => Ok(()),
            Some(problem) => {
                let operation = self.name();
                Err(ConfigError::mode(format!(
                    "operation `{operation}` has `Mode::{mode:?}`: {problem}"
                )))
            }
        }
    }

    /// Policies that run handlers without a claim.
    fn unprotected(&self) -> Option<String> {
        let runs_unprotected = [
            ("on_outage", self.policy.on_outage == OnOutage::RunUnprotected),
            ("on_missing_key", self.on_missing_key == OnMissingKey::RunUnprotected),
        ];
        let setting = runs_unprotected.into_iter().find(|(_, runs)| *runs);
        setting.map(|(setting, _)| {
            format!(
                "its policy `.{setting}(..)` runs handlers without a claim, and then there is no completion to commit \
                 effects with; return such records instead"
            )
        })
    }

    fn without_a_claim(&self, source: &Settings) -> Option<String> {
        let (policy, default) = (&self.policy, Policy::default());
        let set = [
            ("lease", policy.lease != default.lease),
            ("on_conflict", matches!(self.on_conflict, Some(OnConflict::Wait { .. }))),
            ("max_failed_attempts", policy.max_failed_attempts.is_some()),
            ("max_lost_attempts", policy.max_lost_attempts.is_some()),
            ("recoverable", source.recoverable.is_some()),
        ];
        if let Some((setting, _)) = set.into_iter().find(|(_, is_set)| *is_set) {
            return Some(format!(
                "`.{setting}(..)` has no effect, because no key is claimed and nothing is recorded of an attempt that \
                 fails; remove it, or use `Mode::Transactional`"
            ));
        }
        let least = policy.mode.least_retention();
        (policy.retention < least).then(|| {
            format!(
                "its retention is less than {} minutes, so that a request that arrives late could be applied after \
                 it; set a longer `.retention(..)`, or use `Mode::Transactional`",
                least.as_secs() / 60
            )
        })
    }

    fn without_a_completion(&self, source: &Settings) -> Option<String> {
        let (policy, default) = (&self.policy, Policy::default());
        let set = [
            ("retention", policy.retention != default.retention),
            ("result_retention", policy.result_retention.is_some()),
            ("fingerprint", self.fingerprint.is_some() || source.fingerprint.is_some()),
            ("on_timeout", policy.on_timeout != default.on_timeout),
            ("max_failed_attempts", policy.max_failed_attempts.is_some()),
            ("max_lost_attempts", policy.max_lost_attempts.is_some()),
        ];
        if source.recoverable.is_some() {
            return Some(
                "the next record of a key replaces the one that `.recoverable(..)` has kept, which could not be \
                 recovered any more; remove it, or choose another mode"
                    .to_owned(),
            );
        }
        set.into_iter().find(|(_, is_set)| *is_set).map(|(setting, _)| {
            format!(
                "`.{setting}(..)` has no effect, because each delivery calls the handler and no failure is recorded; \
                 remove it, or choose another mode"
            )
        })
    }
}

impl Prepared {
    /// Refuses a mutex whose keys are the identities of the records, so that none excludes another.
    pub(crate) fn names_what_it_excludes(&self) -> Result<(), ConfigError> {
        if self.policy.mode != Mode::Mutex || self.names_key() {
            return Ok(());
        }
        Err(ConfigError::mode(format!(
            "operation `{}` has `Mode::Mutex` and no key: without `.key(..)` the key of a record is its own identity, \
             which excludes no other record; name what is protected with `.key(\"...\")`, or choose another mode",
            self.name
        )))
    }

    /// Refuses an operation with effects where none can be committed.
    pub(crate) fn commits_with(&self, engine: &Engine) -> Result<(), ConfigError> {
        let mode = self.policy.mode;
        let problem = if !mode.commits_effects() {
            return Ok(());
        } else if engine.is_unprotected() {
            "IDEMPOTENCY_DISABLED is set, and without a claim there is no completion to commit effects with; remove the \
             variable"
        } else if engine.capabilities().effects.is_none() {
            "its store has no transactions; use `DynamoDbStore` or `PostgresStore`"
        } else {
            return Ok(());
        };
        let name = &self.name;
        Err(ConfigError::mode(format!(
            "operation `{name}` cannot have `Mode::{mode:?}`: {problem}"
        )))
    }
}

/// Refuses two uses of one name that treat its keys differently: a mutex keeps nothing, so it would be answered from
/// completions that it does not make, and an optimistic operation claims nothing that the others could find.
pub(crate) fn modes_agree(one: Mode, other: Mode, operation: &Arc<str>) -> Result<(), ConfigError> {
    if one == other {
        return Ok(());
    }
    Err(ConfigError::mode(format!(
        "operation `{operation}` has `Mode::{one:?}` at one place and `Mode::{other:?}` at another, with the same keys, and \
         each would be answered from what the other keeps; give both the same mode, or other work another name"
    )))
}
