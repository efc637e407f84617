//! The report about events: records, their keys, and which records have the same key.

use std::path::PathBuf;

use lambda_idempotency::keys::inspect::Record;
use serde_json::Value;

pub(crate) struct Report {
    pub(crate) files: Vec<File>,
    /// Keys that several records share.
    pub(crate) shared: Vec<Shared>,
    pub(crate) warnings: Vec<String>,
}

pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// Whether it was given with `--against`, only to look for duplicates.
    pub(crate) is_other: bool,
    pub(crate) records: Vec<Numbered>,
}

/// A record with its number, by which the report names it: from 1, through all files.
pub(crate) struct Numbered {
    pub(crate) number: usize,
    pub(crate) record: Record,
}

/// A key that several records share: the first of them is handled.
pub(crate) struct Shared {
    /// The key as the store has it.
    pub(crate) key: String,
    /// The first record, and the records that are its duplicates.
    pub(crate) records: Vec<usize>,
    /// The records with this key but another fingerprint than the first: they are refused.
    pub(crate) mismatched: Vec<usize>,
    /// Whether the payloads of the duplicates differ and there is no fingerprint.
    pub(crate) payloads_differ: bool,
}

pub(crate) struct Totals {
    pub(crate) records: usize,
    pub(crate) keys: usize,
    pub(crate) duplicates: usize,
    pub(crate) mismatches: usize,
    pub(crate) without_key: usize,
}

impl Report {
    pub(crate) fn new(files: Vec<File>, warnings: Vec<String>) -> Self {
        let shared = shared(&files);
        Self { files, shared, warnings }
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Numbered> {
        self.files.iter().flat_map(|file| &file.records)
    }

    pub(crate) fn totals(&self) -> Totals {
        let records = self.records().count();
        let keyed = self.records().filter(|record| record.key().is_some()).count();
        let duplicates = self.shared.iter().map(|shared| shared.records.len() - 1).sum();
        let mismatches = self.shared.iter().map(|shared| shared.mismatched.len()).sum();
        let keys = keyed - duplicates - mismatches;
        Totals { records, keys, duplicates, mismatches, without_key: records - keyed }
    }

    /// The default keys of the sources whose records have one: source, what the key is
    /// made of, what it recognises, what it misses.
    pub(crate) fn defaults(&self) -> Vec<[&'static str; 4]> {
        let mut defaults = Vec::new();
        for Numbered { record, .. } in self.records() {
            let has_default = record.key.as_ref().is_some_and(|key| key.path.is_none());
            let default = [record.source, record.identity_parts, record.catches, record.misses];
            if has_default && !defaults.contains(&default) {
                defaults.push(default);
            }
        }
        defaults
    }
}

impl Numbered {
    /// The key as the store has it.
    pub(crate) fn key(&self) -> Option<&str> {
        Some(self.record.key.as_ref()?.key.as_ref().ok()?.as_str())
    }

    /// Why it has no key.
    pub(crate) fn problem(&self) -> Option<String> {
        Some(self.record.key.as_ref()?.key.as_ref().err()?.to_string())
    }

    fn fingerprint(&self) -> Option<&str> {
        Some(self.record.key.as_ref()?.fingerprint.as_ref()?.as_str())
    }

    /// Its payload, whatever its layout.
    fn payload(&self) -> Option<Value> {
        let text = self.record.payload.as_ref().ok()?;
        Some(serde_json::from_str(text).unwrap_or_else(|_| Value::from(&**text)))
    }
}

/// In the order of the first record of each.
fn shared(files: &[File]) -> Vec<Shared> {
    let mut groups: Vec<(&str, Vec<&Numbered>)> = Vec::new();
    for record in files.iter().flat_map(|file| &file.records) {
        let Some(key) = record.key() else { continue };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, records)) => records.push(record),
            None => groups.push((key, vec![record])),
        }
    }
    let share = |(key, records): (&str, Vec<&Numbered>)| {
        let [first, rest @ ..] = records.as_slice() else { return None };
        if rest.is_empty() {
            return None;
        }
        let numbers = |same: bool| {
            let is_same = |record: &&&Numbered| record.fingerprint() == first.fingerprint();
            let chosen = records.iter().filter(move |record| is_same(record) == same);
            chosen.map(|record| record.number).collect()
        };
        let payloads_differ = first.fingerprint().is_none()
            && rest.iter().any(|record| record.payload() != first.payload());
        let (records, mismatched) = (numbers(true), numbers(false));
        Some(Shared { key: key.to_owned(), records, mismatched, payloads_differ })
    };
    groups.into_iter().filter_map(share).collect()
}
