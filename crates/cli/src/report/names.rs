//! The name of a key: the beginning of its hash.

use std::collections::{HashMap, HashSet};

use lambda_idempotency_core::key::Key;
use lambda_idempotency_local::ItemRequest;

use super::run::Run;

/// The names of all keys of a run, by hash and by record.
#[derive(Default)]
pub(super) struct Names {
    by_hash: HashMap<String, String>,
    by_record: HashMap<String, String>,
    operations: HashMap<String, String>,
    /// The tables of idempotency records.
    tables: HashSet<String>,
}

impl Names {
    pub(super) fn of(run: &Run<'_>) -> Self {
        let mut names = Self::default();
        for line in run.story.invocations.iter().flat_map(|seen| &seen.invocation.records) {
            let hash = line.key_hash.as_deref();
            let name = hash.map_or_else(|| line.record.clone(), short);
            if let Some(hash) = hash {
                names.by_hash.entry(hash.to_owned()).or_insert_with(|| name.clone());
            }
            names.operations.entry(name.clone()).or_insert_with(|| line.operation.clone());
            names.by_record.entry(line.record.clone()).or_insert(name);
        }
        let requests = run.story.invocations.iter().flat_map(|seen| &seen.invocation.requests);
        for item in requests.flat_map(|request| &request.items) {
            let hash = logged_hash(&item.key);
            if names.by_hash.contains_key(&hash) {
                names.tables.insert(item.table.clone());
            }
            // The claim says whose it is, also where the process died before it logged that.
            if let Some(record) = &item.record {
                let name = names.of_hash(&hash);
                names.by_record.entry(record.clone()).or_insert_with(|| name.clone());
                if let Some((operation, _)) = item.key.split_once('#') {
                    names.operations.entry(name).or_insert_with(|| operation.to_owned());
                }
            }
        }
        names
    }

    /// The hash of an item's key, if it is an idempotency record. Readable keys and those of Powertools look like any
    /// other key, so the table counts, too.
    pub(super) fn hash_of(&self, item: &ItemRequest) -> Option<String> {
        let is_record = self.tables.contains(&item.table) || has_hash(&item.key);
        is_record.then(|| logged_hash(&item.key))
    }

    pub(super) fn of_hash(&self, hash: &str) -> String {
        self.by_hash.get(hash).cloned().unwrap_or_else(|| short(hash))
    }

    pub(super) fn of_record(&self, record: &str) -> String {
        self.by_record.get(record).cloned().unwrap_or_else(|| record.to_owned())
    }

    pub(super) fn operation(&self, name: &str) -> String {
        self.operations.get(name).cloned().unwrap_or_default()
    }
}

/// The beginning of a hash, enough to tell keys apart.
pub(crate) fn short(hash: &str) -> String {
    hash.chars().take(8).collect()
}

/// Whether a key as the store has it ends with a hash: `place-order#c886be2b...`.
fn has_hash(key: &str) -> bool {
    key.rsplit_once('#').is_some_and(|(_, hash)| hash.len() >= 32)
}

/// The hash of a key as the function logs it. For a readable key it is not in its text.
fn logged_hash(key: &str) -> String {
    Key::from_text(key).hash().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hash_of_an_idempotency_record_is_a_hash() {
        let hash = "c886be2ba0373bff539974d05cd7848f9c08ef72a07439a8b70a66f14f65e92c";
        assert_eq!(logged_hash(&format!("place-order#{hash}")), hash);
        assert!(has_hash(&format!("place-order#{hash}")));
        assert!(!has_hash("o-1") && !has_hash("room#7"));
    }
}
