//! Which keys a command is about: given as they are, or computed from events.

use std::path::PathBuf;

use clap::Args;
use lambda_idempotency::keys::inspect::Record;
use lambda_idempotency_core::{
    key::Key,
    record::{Fingerprint, IdempotencyRecord},
    store::{Store as _, StoreError, StoreErrorKind},
};

use super::{connect::Table, servers};
use crate::{
    failure::Failure,
    keys::{self, KeyOptions, Stored},
    terminal,
};

#[derive(Args)]
pub(crate) struct Target {
    /// Keys, as the table has them
    #[arg(value_name = "KEY", required_unless_present = "event")]
    keys_as_stored: Vec<String>,

    /// The keys of the records of an event, made as `keys` makes them; `-` is standard input; may be repeated
    #[arg(long, value_name = "EVENT.json")]
    event: Vec<PathBuf>,

    #[command(flatten)]
    options: KeyOptions,

    #[command(flatten)]
    stored: Stored,
}

/// A key that a command is about.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) key: Key,
    /// The fingerprint of the event's record, if the key is that of one and `--fingerprint` was given.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Whether the key is the id of an SQS message, which a redrive changes.
    pub(crate) is_message_id: bool,
}

/// Where a record of an event stands in for its key, because it has none.
#[derive(Clone, Debug)]
pub(crate) struct Keyless {
    /// `sqs record 2e1424d4-...`
    pub(crate) record: String,
    pub(crate) why: String,
}

impl Target {
    /// The keys, each once. Records of events that have no key are an error.
    pub(crate) fn keys(&self) -> Result<Vec<Asked>, Failure> {
        let given = self.keys_as_stored.iter().map(String::as_str).map(Key::from_text);
        let mut all: Vec<Asked> =
            given.map(|key| Asked { key, fingerprint: None, is_message_id: false }).collect();
        for path in &self.event {
            let event = terminal::read(path)?;
            let found = of_event(&self.options, &self.stored, &event)
                .map_err(|failure| failure.in_file(path))?;
            for found in found {
                all.push(found.map_err(|Keyless { record, why }| {
                    Failure::from(format!("{record}: {why}")).in_file(path)
                })?);
            }
        }
        Ok(each_once(all))
    }
}

pub(crate) fn each_once(mut asked: Vec<Asked>) -> Vec<Asked> {
    let mut seen = std::collections::BTreeSet::new();
    asked.retain(|asked| seen.insert(asked.key.clone()));
    asked
}

/// The keys of the records of an event.
pub(crate) fn of_event(
    options: &KeyOptions,
    stored: &Stored,
    event: &str,
) -> Result<Vec<Result<Asked, Keyless>>, Failure> {
    let records = keys::records_of(options, stored, event)?;
    if records.is_empty() {
        return Err(Failure::from("the event has no records"));
    }
    Ok(records.into_iter().map(of_record).collect())
}

fn of_record(record: Record) -> Result<Asked, Keyless> {
    let keyless = |why: String| Keyless {
        record: format!("{} record {}", record.source, record.id).trim_end().to_owned(),
        why,
    };
    let Some(found) = &record.key else { return Err(keyless("it has no key".to_owned())) };
    let key = found.key.clone().map_err(|error| keyless(error.to_string()))?;
    // In an envelope, the identity is that of the notification inside.
    let is_of_sqs = record.identity.iter().flatten().next().is_some_and(|source| source == "sqs");
    let is_message_id = found.path.is_none() && is_of_sqs;
    Ok(Asked { key, fingerprint: found.fingerprint.clone(), is_message_id })
}

/// The item under a key: a record, nothing, or an item that is not a record.
pub(crate) type Found = Result<Option<IdempotencyRecord>, StoreError>;

/// The item under each key. An error of a single item is in its place; every other one fails all.
pub(crate) async fn look_up(table: &Table, asked: &[Asked]) -> Result<Vec<Found>, Failure> {
    let mut all = Vec::with_capacity(asked.len());
    for some in asked.chunks(AT_ONCE) {
        let keys: Vec<_> = some.iter().map(|asked| asked.key.clone()).collect();
        for found in table.store.read(&keys, servers::deadline()).await {
            match found {
                Err(error) if error.kind() != StoreErrorKind::Corrupt => return Err(error.into()),
                found => all.push(found),
            }
        }
    }
    Ok(all)
}

/// How many keys are read or written with one deadline.
pub(crate) const AT_ONCE: usize = 500;
