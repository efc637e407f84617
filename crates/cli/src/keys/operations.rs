//! The operations that the arguments describe, as a function would declare them: one for each source.

use std::collections::BTreeMap;

use lambda_idempotency::{
    OnMissingKey, Operation,
    inspect::{self, AnySource},
    keys::KeyFormat,
    payload,
    powertools::PowertoolsKeys,
    record,
};

use super::arguments::{KeyOptions, Missing, Wrapping};
use super::scoped::{self, Scoped};
use crate::failure::Failure;

/// The operation's name without `--operation`.
pub(crate) const UNNAMED: &str = "operation";

/// What begins an expression on the record around the payload.
const ON_RECORD: &str = "record:";

/// The sources without their own settings.
const OTHERS: &str = "";

/// The operations, by source.
pub(crate) struct Operations<'a> {
    arguments: &'a KeyOptions,
    /// How keys are written.
    format: KeyFormat,
    made: BTreeMap<String, (Operation, AnySource)>,
}

impl<'a> Operations<'a> {
    /// Reads the environment variables, and checks the arguments of every source.
    pub(crate) fn new(arguments: &'a KeyOptions) -> Result<Self, Failure> {
        let format = match &arguments.secret_from_env {
            None if arguments.readable => KeyFormat::Readable,
            None => KeyFormat::Hashed,
            Some(variable) => {
                let secret = std::env::var(variable).map_err(|_| {
                    Failure::from(format!(
                        "the environment variable {variable}, which is to hold the secret, is not set"
                    ))
                })?;
                let unfit =
                    |error| Failure::from(format!("the environment variable {variable}: {error}"));
                KeyFormat::secret(secret).map_err(unfit)?
            }
        };
        let mut operations = Self { arguments, format, made: BTreeMap::new() };
        // Reports a mistake in an argument even if no event uses it.
        for source in named(arguments) {
            operations.of(source).map(drop)?;
        }
        let is_for_all = |values: &[Scoped<String>]| values.iter().any(|v| v.source.is_none());
        if is_for_all(&arguments.key) || is_for_all(&arguments.key_from_env) {
            operations.of(OTHERS).map(drop)?;
        }
        Ok(operations)
    }

    /// The operation for records of a source, checked as when a function starts.
    pub(crate) fn of(&mut self, source: &str) -> Result<(Operation, AnySource), Failure> {
        if let Some(made) = self.made.get(source) {
            return Ok(made.clone());
        }
        let made = self.make(source)?;
        inspect::warnings(&made.1, &made.0)?;
        self.made.insert(source.to_owned(), made.clone());
        Ok(made)
    }

    /// The warnings of all expressions, each once.
    pub(crate) fn warnings(&self) -> Result<Vec<String>, Failure> {
        let mut warnings = Vec::new();
        for (operation, source) in self.made.values() {
            for warning in inspect::warnings(source, operation)? {
                let text = format!("key expression: {warning}");
                if !warnings.contains(&text) {
                    warnings.push(text);
                }
            }
        }
        Ok(warnings)
    }

    fn make(&self, source: &str) -> Result<(Operation, AnySource), Failure> {
        let arguments = self.arguments;
        let name = scoped::of(&arguments.operation, source).map_or(UNNAMED, String::as_str);
        let mut operation = Operation::new(name).key_format(self.format.clone());
        let mut settings = AnySource::new();
        match arguments.missing_key {
            Missing::Fail => {}
            Missing::RunUnprotected => {
                operation = operation.on_missing_key(OnMissingKey::RunUnprotected);
            }
        }
        let optional: Vec<_> =
            scoped::all(&arguments.optional, source).map(String::as_str).collect();
        if let Some(expression) = self.key(source)? {
            match expression.trim().strip_prefix(ON_RECORD) {
                Some(on_record) => {
                    settings = settings.key(record(on_record.trim()).optional(optional));
                }
                None => operation = operation.key(payload(expression.trim()).optional(optional)),
            }
        } else if let Some(part) = optional.first() {
            return Err(format!("`--optional {part}` needs a `--key` that has this part").into());
        }
        if let Some(expression) = scoped::of(&arguments.fingerprint, source) {
            match expression.trim().strip_prefix(ON_RECORD) {
                Some(on_record) => settings = settings.fingerprint(record(on_record.trim())),
                None => operation = operation.fingerprint(expression.trim()),
            }
        }
        for Wrapping(envelope) in scoped::all(&arguments.envelope, source) {
            settings = settings.envelope(*envelope);
        }
        if arguments.whole_record {
            settings = settings.whole_record();
        }
        if let Some(powertools) = self.powertools() {
            operation = operation.powertools(powertools);
        }
        Ok((operation, settings))
    }

    /// The key expression: of the variable, if one is named and set.
    fn key(&self, source: &str) -> Result<Option<String>, Failure> {
        let given = scoped::of(&self.arguments.key, source).cloned();
        let Some(variable) = scoped::of(&self.arguments.key_from_env, source) else {
            return Ok(given);
        };
        match (std::env::var(variable), given) {
            (Ok(expression), _) => Ok(Some(expression)),
            (Err(std::env::VarError::NotPresent), Some(given)) => Ok(Some(given)),
            (Err(std::env::VarError::NotPresent), None) => Err(format!(
                "the key expression is to be in the environment variable {variable}, which is not set; set it, or give \
                 a default with `--key`"
            )
            .into()),
            (Err(_), _) => {
                Err(format!("the environment variable {variable} is not valid UTF-8 text").into())
            }
        }
    }

    fn powertools(&self) -> Option<PowertoolsKeys> {
        let prefix = self.arguments.powertools_prefix.as_deref().unwrap_or_default();
        let powertools = PowertoolsKeys::of(self.arguments.powertools?, prefix)
            .hash_function(self.arguments.hash_function);
        Some(if self.arguments.accept_collisions {
            powertools.accept_collisions()
        } else {
            powertools
        })
    }
}

/// The sources with their own settings.
fn named(arguments: &KeyOptions) -> impl Iterator<Item = &'static str> {
    let KeyOptions { operation, key, key_from_env, fingerprint, optional, envelope, .. } =
        arguments;
    let texts = [operation, key, key_from_env, fingerprint, optional];
    let texts = texts.into_iter().flatten().filter_map(|Scoped { source, .. }| *source);
    texts.chain(envelope.iter().filter_map(|Scoped { source, .. }| *source))
}
