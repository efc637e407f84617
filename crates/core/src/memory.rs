//! A store in memory, for tests and as the reference of how a store behaves.

use std::{
    collections::HashMap,
    fmt,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    browse::{Browse, Cursor, Left, Page, PageBuilder},
    clock::{BoxFuture, Timestamp},
    effects::{RefusalReason, RefusedEffect},
    key::Key,
    record::IdempotencyRecord,
    store::{Capabilities, RecordVersion, Store, StoreError, StoreErrorKind, Verdict, Write},
};

/// Keeps records in this process. Do not use it in production: Lambda execution environments do not
/// share it, and its records are lost when the process ends.
///
/// ```
/// use lambda_idempotency_core::memory::MemoryStore;
/// let store = MemoryStore::new();
/// assert!(store.is_empty());
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    records: Mutex<HashMap<Key, IdempotencyRecord>>,
    max_bytes: usize,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store that accepts records with 400 KiB of texts (result, steps, outbox and payload), about as DynamoDB
    /// does.
    #[must_use]
    pub fn new() -> Self {
        Self { records: Mutex::default(), max_bytes: 400 * 1024 }
    }

    /// The number of records, including expired ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether the store has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Deletes the records that expired before `now`, as a server-side TTL does at some later time.
    pub fn sweep(&self, now: Timestamp) {
        self.lock().retain(|_, record| now <= record.expires_at);
    }

    /// Stores a record without a condition, for tests that start from a given state.
    pub fn insert(&self, key: Key, record: IdempotencyRecord) {
        self.lock().insert(key, record);
    }

    // A panic cannot leave the map half-changed, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, IdempotencyRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE.with_effects::<MemoryEffects>()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let mut records = self.lock();
            writes.iter().map(|write| apply(&mut records, write, self.max_bytes)).collect()
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move {
            let records = self.lock();
            keys.iter().map(|key| Ok(records.get(key).cloned())).collect()
        })
    }
}

impl MemoryStore {
    fn page_of(
        &self,
        left: Option<Left>,
        after: Option<&Cursor>,
        limit: NonZeroUsize,
    ) -> Result<Page, StoreError> {
        let records = self.lock();
        let after = |key: &Key| after.is_none_or(|cursor| key.as_str() > cursor.as_str());
        let mut found: Vec<_> = records.iter().filter(|(key, _)| after(key)).collect();
        found.sort_unstable_by_key(|(key, _)| key.as_str());
        let (mut page, mut found) = (PageBuilder::new(limit), found.into_iter().peekable());
        while page.has_room()
            && let Some((key, record)) = found.next()
        {
            let record = Left::listed(left, record.clone());
            let added = page.add::<()>(key.clone(), Ok(Some(record)));
            added.map_err(|failure| failure.report(false))?;
        }
        Ok(page.until_last_key(found.peek().is_some()))
    }
}

impl Browse for MemoryStore {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move { self.page_of(None, after, limit) })
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move { self.page_of(Some(left), after, limit) })
    }

    fn mark_sent<'a>(
        &'a self,
        sent: &'a [(Key, RecordVersion)],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        Box::pin(async move {
            let mut records = self.lock();
            for (key, seen) in sent {
                if let Some(record) = records.get_mut(key)
                    && RecordVersion::of(record) == *seen
                {
                    record.outbox = None;
                }
            }
            sent.iter().map(|_| Ok(())).collect()
        })
    }

    fn count<'a>(&'a self, _deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { Ok(u64::try_from(self.len()).unwrap_or(u64::MAX)) })
    }
}

fn apply(
    records: &mut HashMap<Key, IdempotencyRecord>,
    write: &Write,
    max_bytes: usize,
) -> Verdict {
    let effects = match &write.effects {
        None => None,
        Some(effects) => match effects.get::<MemoryEffects>() {
            Some(effects) if write.record.is_some() => Some(effects),
            _ => return Verdict::Unknown(StoreError::without_effects(write)),
        },
    };
    if write.record.as_ref().is_some_and(|record| record.text_bytes() > max_bytes) {
        let context = format!("a record with more than {max_bytes} bytes of texts");
        return Verdict::Unknown(StoreError::new(StoreErrorKind::TooLarge, context));
    }
    let found = records.get(&write.key);
    if !write.applies(found) {
        return Verdict::Found(found.cloned());
    }
    if let Some(refused) = effects.and_then(MemoryEffects::refused) {
        return Verdict::EffectRefused(refused);
    }
    if let Some(effects) = effects {
        effects.apply();
    }
    match &write.record {
        Some(record) => records.insert(write.key.clone(), record.clone()),
        None => records.remove(&write.key),
    };
    Verdict::Written
}

/// The effects that a [`MemoryStore`] commits together with a write: functions, which
/// are called while no other write can happen. They must not use the store.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
///
/// use lambda_idempotency_core::{
///     clock::Timestamp, effects::Effects, key::Key, memory::{MemoryEffects, MemoryStore},
///     record::{IdempotencyRecord, Status}, store::{Guard, Store, Verdict, Write},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (stock, left) = (Arc::new(AtomicU32::new(1)), |stock: &AtomicU32| stock.load(Ordering::SeqCst));
/// let mut effects = MemoryEffects::default();
/// let (seen, taken) = (Arc::clone(&stock), Arc::clone(&stock));
/// effects.add_if(move || left(&seen) > 0, move || { taken.fetch_sub(1, Ordering::SeqCst); });
/// let effects = Some(Effects::new(effects));
///
/// let store = MemoryStore::new();
/// let record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(60));
/// let write = |key| Write::new(Key::from_text(key), Guard::Absent, Some(record.clone()));
/// let writes = [write("a"), write("b")].map(|write| write.with_effects(effects.clone()));
/// let verdicts = store.write(&writes, Timestamp::from_secs(1)).await;
/// assert!(matches!(verdicts[..], [Verdict::Written, Verdict::EffectRefused(_)]));
/// assert_eq!((left(&stock), store.len()), (0, 1));
/// # }
/// ```
#[derive(Default)]
pub struct MemoryEffects(Vec<MemoryEffect>);

struct MemoryEffect {
    holds: Box<dyn Fn() -> bool + Send + Sync>,
    apply: Box<dyn Fn() + Send + Sync>,
}

impl MemoryEffects {
    /// Adds an effect without a condition.
    pub fn add(&mut self, apply: impl Fn() + Send + Sync + 'static) {
        self.add_if(|| true, apply);
    }

    /// Adds an effect with a condition. The conditions of all effects are asked before any is applied.
    pub fn add_if(
        &mut self,
        holds: impl Fn() -> bool + Send + Sync + 'static,
        apply: impl Fn() + Send + Sync + 'static,
    ) {
        self.0.push(MemoryEffect { holds: Box::new(holds), apply: Box::new(apply) });
    }

    /// The first effect whose condition does not hold.
    fn refused(&self) -> Option<RefusedEffect> {
        let position = self.0.iter().position(|effect| !(effect.holds)())?;
        Some(RefusedEffect::new(RefusalReason::ConditionFailed).at(position))
    }

    fn apply(&self) {
        self.0.iter().for_each(|effect| (effect.apply)());
    }
}

impl fmt::Debug for MemoryEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryEffects({})", self.0.len())
    }
}
