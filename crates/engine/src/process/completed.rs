//! Keys that were seen completed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use super::cache::Cache;
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Json, Status},
    store::RecordVersion,
};
use lambda_idempotency_keys::Key;

/// The records of keys that were seen completed, within the bounds of a [`Cache`].
///
/// A record is final once it is completed, so a copy of it is as good as the original until it
/// expires. The copy is not used past `expires_at` as this process's clock shows it: the allowance
/// for skew is left to callers that can ask the store.
pub(crate) struct Completed {
    pub(super) bounds: Cache,
    kept: Mutex<Kept>,
}

pub(super) struct Kept {
    pub(super) entries: LruCache<Key, Entry>,
    pub(super) bytes: usize,
    /// The records that this process has freed last.
    freed: LruCache<Key, RecordVersion>,
}

/// How many freed records are known: those that other invocations may have read before, and not kept yet.
const FREED: usize = 1000;

pub(super) struct Entry {
    record: Arc<IdempotencyRecord>,
    bytes: usize,
    since: Timestamp,
}

/// What an entry costs beside its texts, roughly: the record, its counters, the places in the list
/// and in the map.
pub(super) const OVERHEAD: usize = 512;

impl Completed {
    pub(crate) fn new(bounds: Cache) -> Self {
        let (entries, freed) = (LruCache::unbounded(), LruCache::unbounded());
        Self { bounds, kept: Mutex::new(Kept { entries, bytes: 0, freed }) }
    }

    /// This record of `key` is about to be deleted: it answers nothing any more, whoever has read it before.
    pub(crate) fn free(&self, key: &Key, record: &IdempotencyRecord) {
        let mut kept = self.lock();
        kept.forget(key);
        kept.freed.push(key.clone(), RecordVersion::of(record));
        if kept.freed.len() > FREED {
            kept.freed.pop_lru();
        }
    }

    /// Remembers `record`, which was seen in the store, if it is completed and its messages are sent.
    pub(crate) fn keep(&self, key: &Key, record: &Arc<IdempotencyRecord>, now: Timestamp) {
        let entry = Entry::new(key, record, now);
        let fits = self.bounds.max_entries() > 0 && entry.bytes <= self.bounds.max_bytes();
        // A result that could not be read now may be readable later.
        let is_whole = record.outbox.is_none() && record.unread_result.is_none();
        if record.status == Status::Completed && is_whole && fits {
            let mut kept = self.lock();
            if !kept.is_freed(key, record) {
                kept.add(key.clone(), entry);
                kept.trim(&self.bounds);
            }
        }
    }

    /// The record of `key`, if it is remembered and still counts.
    pub(crate) fn get(&self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>> {
        if self.bounds.max_entries() == 0 {
            return None;
        }
        let mut kept = self.lock();
        let entry = kept.entries.get(key)?;
        // If the clock has stepped back, the age of the entry is not known.
        let fresh = entry.since <= now && now.since(entry.since) <= self.bounds.max_age();
        if fresh && now <= entry.record.expires_at {
            return Some(Arc::clone(&entry.record));
        }
        kept.forget(key);
        None
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many keys and bytes are remembered.
    #[cfg(test)]
    pub(crate) fn extent(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.entries.len(), kept.bytes)
    }
}

impl Kept {
    pub(super) fn add(&mut self, key: Key, entry: Entry) {
        self.bytes = self.bytes.saturating_add(entry.bytes);
        if let Some((_, replaced)) = self.entries.push(key, entry) {
            self.bytes = self.bytes.saturating_sub(replaced.bytes);
        }
    }

    fn is_freed(&self, key: &Key, record: &IdempotencyRecord) -> bool {
        self.freed.peek(key).is_some_and(|freed| *freed == RecordVersion::of(record))
    }

    fn forget(&mut self, key: &Key) {
        if let Some(entry) = self.entries.pop(key) {
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }

    /// Forgets the least recently used until what is left is within the bounds.
    pub(super) fn trim(&mut self, bounds: &Cache) {
        while self.entries.len() > bounds.max_entries() || self.bytes > bounds.max_bytes() {
            let Some((_, oldest)) = self.entries.pop_lru() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
        }
    }
}

impl Entry {
    pub(super) fn new(key: &Key, record: &Arc<IdempotencyRecord>, now: Timestamp) -> Self {
        let texts = [
            Some(key.as_str()),
            record.result.as_deref(),
            record.fingerprint.as_ref().map(Fingerprint::as_str),
            record.error_type.as_deref(),
        ];
        let bytes = texts.into_iter().flatten().map(str::len).fold(OVERHEAD, usize::saturating_add);
        let mut record = Arc::clone(record);
        // The note is for writes, and may be as long as the text.
        if record.result.as_ref().is_some_and(Json::is_noted) {
            let record = Arc::make_mut(&mut record);
            record.result = record.result.as_ref().map(Json::without_note);
        }
        Self { record, bytes, since: now }
    }
}
