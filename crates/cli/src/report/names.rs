//! The name of a key: the name of its work or the beginning of its hash.

use std::collections::HashMap;

use super::run::Run;

/// The names of all keys of a run, by hash and by record.
#[derive(Default)]
pub(super) struct Names {
    by_hash: HashMap<String, String>,
    by_record: HashMap<String, String>,
    operations: HashMap<String, String>,
}

impl Names {
    pub(super) fn of(run: &Run<'_>) -> Self {
        let mut names = Self::default();
        for line in run.invocations.iter().flat_map(|seen| &seen.invocation.records) {
            let work = (run.work_of)(&line.record);
            let hash = line.key_hash.as_deref();
            let name = work.or_else(|| hash.map(short)).unwrap_or_else(|| line.record.clone());
            if let Some(hash) = hash {
                names.by_hash.entry(hash.to_owned()).or_insert_with(|| name.clone());
            }
            names.operations.entry(name.clone()).or_insert_with(|| line.operation.clone());
            names.by_record.entry(line.record.clone()).or_insert(name);
        }
        names
    }

    pub(super) fn of_hash(&self, hash: &str) -> String {
        self.by_hash.get(hash).cloned().unwrap_or_else(|| short(hash))
    }

    pub(super) fn of_record(&self, run: &Run<'_>, record: &str) -> String {
        let known = || self.by_record.get(record).cloned();
        (run.work_of)(record).or_else(known).unwrap_or_else(|| record.to_owned())
    }

    pub(super) fn operation(&self, name: &str) -> String {
        self.operations.get(name).cloned().unwrap_or_default()
    }
}

/// The beginning of a hash, enough to tell keys apart.
pub(crate) fn short(hash: &str) -> String {
    hash.chars().take(8).collect()
}

/// The hash in a key as the store has it: `place-order#c886be2b...`.
pub(super) fn hash_of(key: &str) -> Option<&str> {
    key.rsplit_once('#').map(|(_, hash)| hash).filter(|hash| hash.len() >= 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hash_of_an_idempotency_record_is_a_hash() {
        let hash = "c886be2ba0373bff539974d05cd7848f9c08ef72a07439a8b70a66f14f65e92c";
        assert_eq!(hash_of(&format!("place-order#{hash}")), Some(hash));
        assert_eq!((hash_of("o-1"), hash_of("room#7")), (None, None));
    }
}
