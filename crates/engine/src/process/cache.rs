//! How much is remembered of completed keys.

use std::time::Duration;

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
/// use lambda_idempotency_engine::{batch::Engine, process::Cache};
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

    /// Takes at most this many bytes of memory, approximately. What would not fit by itself is not
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

    pub(super) const fn max_entries(&self) -> usize {
        self.entries
    }

    pub(super) const fn max_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) const fn max_age(&self) -> Duration {
        self.age
    }
}
