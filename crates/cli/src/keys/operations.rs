//! The operations that the arguments describe, as a function would declare them: one for each source.

use std::collections::BTreeMap;

use lambda_idempotency::{KeyFormat, KeyPath, OnMissingKey, Operation, PowertoolsKeys, inspect};

use super::arguments::{KeyOptions, Missing, Wrapping};
use super::scoped::{self, Scoped};
use crate::failure::Failure;

/// The operation's name without `--operation`.
pub(crate) const UNNAMED: &str = "operation";

/// The sources without their own settings.
const OTHERS: &str = "";

/// The operations, by source.
pub(crate) struct Operations<'a> {
    arguments: &'a KeyOptions,
    /// How keys are written.
    format: KeyFormat,
    made: BTreeMap<String, Operation>,
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
            operations.of(source)?;
        }
        let is_for_all = |values: &[Scoped<String>]| values.iter().any(|v| v.source.is_none());
        if is_for_all(&arguments.key) || is_for_all(&arguments.key_from_env) {
            operations.of(OTHERS)?;
        }
        Ok(operations)
    }

    /// The operation for records of a source, checked as when a function starts.
    pub(crate) fn of(&mut self, source: &str) -> Result<Operation, Failure> {
        if let Some(operation) = self.made.get(source) {
            return Ok(operation.clone());
        }
        let operation = self.make(source);
        operation.check()?;
        self.made.insert(source.to_owned(), operation.clone());
        Ok(operation)
    }

    /// The warnings of all expressions, each once.
    pub(crate) fn warnings(&self) -> Result<Vec<String>, Failure> {
        let mut warnings = Vec::new();
        for operation in self.made.values() {
            for warning in inspect::warnings(operation)? {
                let text = format!("key expression: {warning}");
                if !warnings.contains(&text) {
                    warnings.push(text);
                }
            }
        }
        Ok(warnings)
    }

    fn make(&self, source: &str) -> Operation {
        let arguments = self.arguments;
        let name = scoped::of(&arguments.operation, source).map_or(UNNAMED, String::as_str);
        let mut operation = Operation::new(name).on_missing_key(match arguments.missing_key {
            Missing::Fail => OnMissingKey::Return,
            Missing::RunUnprotected => OnMissingKey::RunUnprotected,
            Missing::Skip => OnMissingKey::Skip,
        });
        if let Some(expression) = scoped::of(&arguments.key, source) {
            operation = operation.key(KeyPath::parse(expression));
        }
        if let Some(variable) = scoped::of(&arguments.key_from_env, source) {
            operation = operation.key_from_env(variable);
        }
        if let Some(expression) = scoped::of(&arguments.fingerprint, source) {
            operation = operation.fingerprint(KeyPath::parse(expression));
        }
        let optional = scoped::all(&arguments.optional, source).map(String::as_str);
        operation = operation.optional(optional);
        for Wrapping(envelope) in scoped::all(&arguments.envelope, source) {
            operation = operation.envelope(*envelope);
        }
        if arguments.whole_record {
            operation = operation.whole_record();
        }
        operation = operation.key_format(self.format.clone());
        match self.powertools() {
            Some(powertools) => operation.powertools(powertools),
            None => operation,
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
