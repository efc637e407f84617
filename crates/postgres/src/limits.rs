//! Limits: of the time of a call, of a key and of a record.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    record::IdempotencyRecord,
    store::{StoreErrorKind, Write},
};

pub(crate) use lambda_idempotency_core::retry::{Backoff, Budget};

use crate::{config::Config, error::Failure};

/// The least time for a request.
pub(crate) const SHORTEST: Duration = Duration::from_millis(50);

/// The time of one call of the store.
pub(crate) fn budget(config: &Config, call_deadline: Timestamp) -> Budget<'_> {
    config.timing.budget(call_deadline)
}

/// The pauses between the requests of a call.
pub(crate) fn backoff(config: &Config) -> Backoff {
    config.timing.backoff(SHORTEST)
}

/// The longest key. An entry of an index has at most a third of a page, 2704 bytes.
const LONGEST_KEY: usize = 2048;

/// The most bytes of the texts of a record. PostgreSQL holds a gigabyte in each; such results would
/// fill the memory of the function before.
const LARGEST: usize = 16 * 1024 * 1024;

/// Refuses a key that PostgreSQL would refuse together with its whole batch.
pub(crate) fn fit_key(config: &Config, key: &Key) -> Result<(), Failure> {
    let key = key.as_str();
    if !(1..=LONGEST_KEY).contains(&key.len()) {
        let context = format!(
            "a key of {} bytes for PostgreSQL table {}, which takes 1 to {LONGEST_KEY}",
            key.len(),
            config.table.name()
        );
        return Err(Failure::new(StoreErrorKind::Refused, context));
    }
    if has_nul(key) {
        return Err(nul(config, "key"));
    }
    Ok(())
}

/// Refuses a write that PostgreSQL would refuse; returns how large it is, in bytes.
pub(crate) fn fit(config: &Config, write: &Write) -> Result<usize, Failure> {
    fit_key(config, &write.key)?;
    let Some(record) = &write.record else { return Ok(write.key.as_str().len()) };
    let texts = texts(record);
    if let Some((name, _)) = texts.iter().find(|(_, text)| has_nul(text)) {
        return Err(nul(config, name));
    }
    let size = texts.iter().map(|(_, text)| text.len()).sum::<usize>();
    if size > LARGEST {
        let context = format!(
            "a record of {size} bytes for PostgreSQL table {}, which holds {LARGEST}: return less \
             from the handler, or keep the result elsewhere and return a reference",
            config.table.name()
        );
        return Err(Failure::new(StoreErrorKind::TooLarge, context));
    }
    Ok(size.saturating_add(write.key.as_str().len()))
}

/// The texts that are stored as they are.
fn texts(record: &IdempotencyRecord) -> Vec<(&'static str, &str)> {
    let texts = [
        ("result", record.result.as_deref()),
        ("text of steps", record.steps.as_deref()),
        ("outbox", record.outbox.as_deref()),
        ("payload", record.payload.as_deref()),
        ("fingerprint", record.fingerprint.as_ref().map(|f| f.as_str())),
        ("error type", record.error_type.as_deref()),
        ("application name", record.application.as_deref()),
    ];
    texts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

fn nul(config: &Config, name: &str) -> Failure {
    let context = format!(
        "a {name} with a NUL character for PostgreSQL table {}, whose texts cannot hold one",
        config.table.name()
    );
    Failure::new(StoreErrorKind::Refused, context)
}
