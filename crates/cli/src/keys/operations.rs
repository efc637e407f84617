//! The operation that the arguments describe, as a function would declare it, and the source that it is for.

use lambda_idempotency::{
    Operation,
    keys::{
        inspect::{self, AnySource},
        powertools::PowertoolsKeys,
        record,
    },
};

use super::arguments::{KeyOptions, Stored, Wrapping};
use crate::failure::Failure;

/// The operation's name without `--operation`.
pub(crate) const UNNAMED: &str = "operation";

/// What begins an expression on the record around the payload.
const ON_RECORD: &str = "record:";

/// The operation and its source, checked as when a function starts.
pub(crate) fn operation(
    options: &KeyOptions,
    stored: &Stored,
) -> Result<(Operation, AnySource), Failure> {
    let mut operation = Operation::new(options.operation.as_deref().unwrap_or(UNNAMED));
    let mut source = AnySource::new();
    if let Some(expression) = &options.key {
        match expression.trim().strip_prefix(ON_RECORD) {
            Some(on_record) => source = source.key(record(on_record.trim())),
            None => operation = operation.key(expression.trim()),
        }
    }
    if let Some(expression) = &options.fingerprint {
        match expression.trim().strip_prefix(ON_RECORD) {
            Some(on_record) => source = source.fingerprint(record(on_record.trim())),
            None => operation = operation.fingerprint(expression.trim()),
        }
    }
    for Wrapping(envelope) in &stored.envelope {
        source = source.envelope(*envelope);
    }
    if let Some(language) = stored.powertools {
        let prefix = stored.powertools_prefix.as_deref().unwrap_or_default();
        let powertools = PowertoolsKeys::of(language, prefix);
        operation = operation.powertools(powertools.hash_function(stored.hash_function));
    }
    inspect::check(&source, &operation)?;
    Ok((operation, source))
}
