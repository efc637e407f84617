//! The memory that the invocations of one process share: keys that were seen completed.
//!
//! Most Lambda processes take one event at a time; Managed Instances hand one process many at once. A completion
//! that was seen answers its duplicates for a short while, within the bounds of a [`Cache`]. A key that another invocation of
//! the process works on is claimed in the store, as between two processes.
//!
//! Nothing is decided here. Memory holds records that were in the store, and they are judged by
//! [`admission`](lambda_idempotency_core::admission) as if they had just been read. Losing all of it costs requests, never
//! a promise.
//!
//! The clones of one [`Engine`](crate::batch::Engine) share it. Nothing is global: two engines with two stores know
//! nothing of each other.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lru::LruCache;

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Status},
    store::RecordVersion,
};
use lambda_idempotency_keys::Key;

/// How much a process remembers of the keys it saw completed, to answer their duplicates without
/// asking the store.
///
/// The default is small: 1000 keys, 1 MiB, 60 seconds. A key is forgotten when the first of the
/// bounds is reached, the least recently used one first, and never used past its retention. Only
/// completed keys are remembered, since only they are final.
///
/// The price: an operator who **deletes a record to have its event processed again** has to wait up to
/// the age, because warm processes go on answering from memory. Likewise for records that another
/// library overwrites without a condition.
///
/// ```
/// use std::time::Duration;
/// use lambda_idempotency_core::memory::MemoryStore;
/// use lambda_idempotency_engine::{batch::Engine, completed::Cache};
///
/// let modest = Cache::new().entries(100).age(Duration::from_secs(5));
/// let engine = Engine::new(MemoryStore::new()).with_cache(modest);
/// let none = Engine::new(MemoryStore::new()).with_cache(Cache::off());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    entries: usize,
    bytes: usize,
    age: Duration,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl Cache {
    /// The default bounds: 1000 keys, 1 MiB, 60 seconds.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: 1000, bytes: 1024 * 1024, age: Duration::from_secs(60) }
    }

    /// Nothing is remembered: every delivery asks the store.
    #[must_use]
    pub const fn off() -> Self {
        Self::new().entries(0)
    }

    /// Remembers at most this many keys.
    #[must_use]
    pub const fn entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// Takes at most this many bytes of memory, approximately. A key that would not fit by itself is not
    /// remembered.
    #[must_use]
    pub const fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Remembers a key for this long after it was seen completed.
    #[must_use]
    pub const fn age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }

    const fn max_entries(&self) -> usize {
        self.entries
    }

    const fn max_bytes(&self) -> usize {
        self.bytes
    }

    const fn max_age(&self) -> Duration {
        self.age
    }
}

/// The records of keys that were seen completed, within the bounds of a [`Cache`].
///
/// A record is final once it is completed, so a copy of it is as good as the original until it
/// expires. The copy is not used past `expires_at` as this process's clock shows it: the allowance
/// for skew is left to callers that can ask the store.
pub(crate) struct Completed {
    bounds: Cache,
    kept: Mutex<CachedKeys>,
}

struct CachedKeys {
    entries: LruCache<Key, CachedRecord>,
    bytes: usize,
    /// The records that this process has freed last.
    freed: LruCache<Key, RecordVersion>,
}

/// How many freed records are known: those that other invocations may have read before, and not kept yet.
const FREED: usize = 1000;

struct CachedRecord {
    record: Arc<IdempotencyRecord>,
    bytes: usize,
    since: Timestamp,
}

/// The cost of an entry beside its texts, roughly: the record, its counters, the places in the list
/// and in the map.
const OVERHEAD: usize = 512;

impl Completed {
    pub(crate) fn new(bounds: Cache) -> Self {
        let (entries, freed) = (LruCache::unbounded(), LruCache::unbounded());
        Self { bounds, kept: Mutex::new(CachedKeys { entries, bytes: 0, freed }) }
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
        let entry = CachedRecord::new(key, record, now);
        let fits = self.bounds.max_entries() > 0 && entry.bytes <= self.bounds.max_bytes();
        if record.status == Status::Completed && record.outbox.is_none() && fits {
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

    fn lock(&self) -> MutexGuard<'_, CachedKeys> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many keys and bytes are remembered.
    #[cfg(test)]
    pub(crate) fn extent(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.entries.len(), kept.bytes)
    }
}

impl CachedKeys {
    fn add(&mut self, key: Key, entry: CachedRecord) {
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
    fn trim(&mut self, bounds: &Cache) {
        while self.entries.len() > bounds.max_entries() || self.bytes > bounds.max_bytes() {
            let Some((_, oldest)) = self.entries.pop_lru() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
        }
    }
}

impl CachedRecord {
    fn new(key: &Key, record: &Arc<IdempotencyRecord>, now: Timestamp) -> Self {
        let texts = [
            Some(key.as_str()),
            record.result.as_deref(),
            record.fingerprint.as_ref().map(Fingerprint::as_str),
            record.error_type.as_deref(),
        ];
        let bytes = texts.into_iter().flatten().map(str::len).fold(OVERHEAD, usize::saturating_add);
        Self { record: Arc::clone(record), bytes, since: now }
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::record::Owner;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1000);

    fn key(n: usize) -> Key {
        Key::from_text(format!("op#{n}"))
    }

    fn record(status: Status, outcome: &str) -> Arc<IdempotencyRecord> {
        let mut record = IdempotencyRecord::new(status, NOW.plus(Duration::from_secs(30)));
        record.result = Some(outcome.into());
        Arc::new(record)
    }

    fn done() -> Arc<IdempotencyRecord> {
        record(Status::Completed, "1")
    }

    #[test]
    fn only_what_is_final_is_kept() {
        let completed = Completed::new(Cache::new());
        completed.keep(&key(1), &record(Status::InProgress, "1"), NOW);
        completed.keep(&key(2), &record(Status::PermanentlyFailed, "1"), NOW);
        completed.keep(&key(3), &done(), NOW);
        let mut unsent = IdempotencyRecord::clone(&done());
        unsent.outbox = Some("[]".into());
        completed.keep(&key(4), &Arc::new(unsent), NOW);
        let found: Vec<_> = (1..5).map(|n| completed.get(&key(n), NOW).is_some()).collect();
        assert_eq!(found, [false, false, true, false]);
    }

    #[test]
    fn it_ends_with_the_age_and_with_the_retention() {
        let age = Duration::from_secs(10);
        let completed = Completed::new(Cache::new().age(age));
        completed.keep(&key(1), &done(), NOW);
        assert!(completed.get(&key(1), NOW.plus(age)).is_some());
        let past = NOW.plus(age + Duration::from_millis(1));
        assert!(completed.get(&key(1), past).is_none());
        assert_eq!(completed.extent(), (0, 0), "and takes no room any more");

        let completed = Completed::new(Cache::new());
        completed.keep(&key(1), &done(), NOW);
        let last = NOW.plus(Duration::from_secs(30));
        assert!(completed.get(&key(1), last).is_some());
        assert!(completed.get(&key(1), last.plus(Duration::from_millis(1))).is_none());
    }

    #[test]
    fn an_entry_from_the_future_has_no_age() {
        let completed = Completed::new(Cache::new());
        completed.keep(&key(1), &done(), NOW);
        assert!(completed.get(&key(1), NOW.minus(Duration::from_millis(1))).is_none());
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let completed = Completed::new(Cache::new().entries(2));
        for n in [1, 2] {
            completed.keep(&key(n), &done(), NOW);
        }
        assert!(completed.get(&key(1), NOW).is_some());
        completed.keep(&key(3), &done(), NOW);
        let found: Vec<_> = (1..4).map(|n| completed.get(&key(n), NOW).is_some()).collect();
        assert_eq!(found, [true, false, true]);
    }

    #[test]
    fn bytes_are_bounded_and_counted_once() {
        let completed = Completed::new(Cache::new().bytes(10 * (OVERHEAD + 100)));
        let large = record(Status::Completed, &"x".repeat(90));
        for n in 0..100 {
            completed.keep(&key(n % 20), &large, NOW);
            let (entries, bytes) = completed.extent();
            assert!(bytes <= 10 * (OVERHEAD + 100) && entries <= 10, "{entries}, {bytes}");
        }
        assert_eq!(completed.extent().0, 10);
        let huge = record(Status::Completed, &"x".repeat(10 * (OVERHEAD + 100)));
        completed.keep(&key(99), &huge, NOW);
        assert_eq!(completed.extent().0, 10, "a record that cannot fit displaces no other");
    }

    #[test]
    fn as_many_bytes_are_kept_as_allowed() {
        let completed = Completed::new(Cache::new().bytes(2 * (OVERHEAD + 5)));
        for n in [1, 2, 3] {
            completed.keep(&key(n), &done(), NOW);
        }
        assert_eq!(completed.extent(), (2, 2 * (OVERHEAD + 5)), "`op#1` and `1` are five bytes");
    }

    #[test]
    fn off_is_off() {
        let completed = Completed::new(Cache::off());
        completed.keep(&key(1), &done(), NOW);
        assert!(completed.get(&key(1), NOW).is_none());
    }

    #[test]
    fn a_freed_record_is_not_kept_again_and_its_successor_is() {
        let completed = Completed::new(Cache::new());
        let (first, second) = (done(), record_of(2));
        completed.keep(&key(1), &first, NOW);
        completed.free(&key(1), &first);
        assert!(completed.get(&key(1), NOW).is_none() && completed.extent() == (0, 0));
        completed.keep(&key(1), &first, NOW);
        assert!(completed.get(&key(1), NOW).is_none(), "an invocation had read it before");
        completed.keep(&key(1), &second, NOW);
        assert!(completed.get(&key(1), NOW).is_some());
    }

    fn record_of(owner: u128) -> Arc<IdempotencyRecord> {
        let mut record = IdempotencyRecord::clone(&done());
        record.owner = Some(Owner::from_bits(owner));
        Arc::new(record)
    }
}
