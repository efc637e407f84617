//! Which keys a command is about: given as they are, or computed from events.

use std::path::PathBuf;

use clap::Args;
use lambda_idempotency_core::{key::Key, record::IdempotencyRecord, store::Store as _};

use super::connect::Table;
use crate::{
    failure::Failure,
    keys::{self, KeyOptions},
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
}

impl Target {
    /// The keys, each once. Records of events that have no key are an error.
    pub(crate) fn keys(&self) -> Result<Vec<Key>, Failure> {
        let given = self.keys_as_stored.iter().map(String::as_str).map(Key::from_text);
        let mut all: Vec<Key> = given.collect();
        for path in &self.event {
            let found = of_event(&self.options, &keys::read(path)?);
            all.extend(found.map_err(|failure| failure.in_file(path))?);
        }
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|key| seen.insert(key.clone()));
        Ok(all)
    }
}

/// The keys of the records of an event.
pub(crate) fn of_event(options: &KeyOptions, event: &str) -> Result<Vec<Key>, Failure> {
    let records = keys::records_of(options, event)?;
    if records.is_empty() {
        return Err(Failure::from("the event has no records"));
    }
    let keys = records.into_iter().map(|record| {
        let named = format!("{} record {}", record.source, record.id);
        let key = record.key.ok_or_else(|| Failure::from(format!("{named} has no key")))?.key;
        key.map_err(|error| Failure::from(format!("{named}: {error}")))
    });
    keys.collect()
}

/// What is stored under each key.
pub(crate) async fn look_up(
    table: &Table,
    keys: &[Key],
) -> Result<Vec<Option<IdempotencyRecord>>, Failure> {
    let found = table.store.read(keys, Table::deadline()).await;
    Ok(found.into_iter().collect::<Result<_, _>>()?)
}
