//! A store whose writes may be applied after their caller is gone.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{Capabilities, Store, StoreError, Verdict, Write},
};

/// What happens to writes in transit when their caller is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DelayedWrites {
    /// They are never applied.
    #[default]
    Lost,
    /// They are applied after this number of further calls of the store. With 0, they are applied
    /// before the next call; with 1, after the successor's first read, which then sees the old
    /// record.
    After(usize),
}

/// A store behind a network that may still deliver writes after their caller is gone.
///
/// Each call waits once before each of its writes and once before its response, so that
/// [`drop_after`](super::drop_after) can stop its caller with all, some or none of a batch applied.
/// The other writes are then pending, and [`DelayedWrites`] says whether and when they are applied.
/// The inner store has to answer at once, as a store in memory does. Clones share the store.
///
/// ```
/// use lambda_idempotency_core::{
///     clock::Timestamp, key::Key, memory::MemoryStore, record::{IdempotencyRecord, Status},
///     store::{Guard, Store, Write},
/// };
/// use lambda_idempotency_testkit::crashing::{DelayedStore, DelayedWrites, drop_after};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = DelayedStore::new(MemoryStore::new());
/// store.delayed_writes(DelayedWrites::After(1));
/// let record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(60));
/// let claim = Write::new(Key::from_text("order-1"), Guard::Absent, Some(record));
/// let call_deadline = Timestamp::from_secs(1);
/// assert!(drop_after(1, store.write(&[claim.clone()], call_deadline)).await.is_none());
/// assert_eq!((store.inner().len(), store.pending()), (0, 1));
///
/// let found = store.read(std::slice::from_ref(&claim.key), call_deadline).await;
/// assert!(matches!(found[..], [Ok(None)]), "the successor sees nothing,");
/// store.read(&[claim.key], call_deadline).await;
/// assert_eq!(store.inner().len(), 1, "and then it is there");
/// # }
/// ```
pub struct DelayedStore<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    inner: S,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    delayed: DelayedWrites,
    /// The pending writes in the order they were sent, each with the number of calls before it is
    /// applied.
    pending: VecDeque<(usize, Write)>,
}

impl<S: Store> DelayedStore<S> {
    /// Wraps `inner`. Default: [`DelayedWrites::Lost`].
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self { shared: Arc::new(Shared { inner, state: Mutex::default() }) }
    }

    /// The inner store.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.shared.inner
    }

    /// Sets what happens to the writes of callers that are dropped from now on.
    pub fn delayed_writes(&self, what: DelayedWrites) {
        self.lock().delayed = what;
    }

    /// The number of pending writes.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.lock().pending.len()
    }

    /// Applies all pending writes now.
    pub async fn apply_pending(&self) {
        let pending: Vec<_> = self.lock().pending.drain(..).collect();
        for (_, write) in pending {
            self.shared.inner.write(&[write], Timestamp::from_millis(u64::MAX)).await;
        }
    }

    /// Counts a call, and applies the writes that are due before it.
    async fn arrive(&self) {
        let mut due = Vec::new();
        self.lock().pending.retain_mut(|(calls, write)| {
            if *calls == 0 {
                due.push(write.clone());
                return false;
            }
            *calls -= 1;
            true
        });
        for write in due {
            self.shared.inner.write(&[write], Timestamp::from_millis(u64::MAX)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writes of one call that are not yet applied. They become pending when the caller is dropped.
struct Sending<'a, S: Store> {
    store: &'a DelayedStore<S>,
    left: VecDeque<Write>,
}

impl<S: Store> Drop for Sending<'_, S> {
    fn drop(&mut self) {
        let mut state = self.store.lock();
        if let DelayedWrites::After(calls) = state.delayed {
            state.pending.extend(self.left.drain(..).map(|write| (calls, write)));
        }
    }
}

impl<S: Store> Store for DelayedStore<S> {
    fn capabilities(&self) -> Capabilities {
        self.shared.inner.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        let left = writes.iter().cloned().collect();
        Box::pin(async move {
            let mut sending = Sending { store: self, left };
            let mut verdicts = Vec::with_capacity(writes.len());
            tokio::task::yield_now().await;
            self.arrive().await;
            while let Some(write) = sending.left.pop_front() {
                verdicts.extend(self.shared.inner.write(&[write], call_deadline).await);
                tokio::task::yield_now().await;
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.arrive().await;
            let answers = self.shared.inner.read(keys, call_deadline).await;
            tokio::task::yield_now().await;
            answers
        })
    }
}

impl<S> Clone for DelayedStore<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug> fmt::Debug for DelayedStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("DelayedStore")
            .field("inner", &self.shared.inner)
            .field("delayed", &state.delayed)
            .field("pending", &state.pending.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::{memory::MemoryStore, record::Status, store::Guard};

    use super::*;
    use crate::crashing::{crash_points, drop_after};

    const LATER: Timestamp = Timestamp::from_secs(60);

    fn claims() -> Vec<Write> {
        ["a", "b", "c"]
            .map(|key| {
                Write::new(
                    Key::from_text(key),
                    Guard::Absent,
                    Some(IdempotencyRecord::new(Status::InProgress, LATER)),
                )
            })
            .into()
    }

    #[tokio::test]
    async fn a_batch_is_stopped_between_any_two_of_its_writes() {
        let mut applied = Vec::new();
        crash_points(async |polls| {
            let store = DelayedStore::new(MemoryStore::new());
            let claims = claims();
            let ended = drop_after(polls, store.write(&claims, LATER)).await.is_some();
            applied.push(store.inner().len());
            assert_eq!(store.pending(), 0, "lost, unless something else is said");
            ended
        })
        .await;
        assert_eq!(applied, [0, 0, 1, 2, 3, 3]);
    }

    #[tokio::test]
    async fn a_pending_write_is_applied_when_due_under_its_own_guard() {
        let store = DelayedStore::new(MemoryStore::new());
        store.delayed_writes(DelayedWrites::After(1));
        let claims = claims();
        assert!(drop_after(2, store.write(&claims, LATER)).await.is_none());
        assert_eq!((store.inner().len(), store.pending()), (1, 2));
        let b = Key::from_text("b");
        store.inner().insert(b.clone(), IdempotencyRecord::new(Status::Completed, LATER));
        store.read(std::slice::from_ref(&b), LATER).await;
        assert_eq!((store.inner().len(), store.pending()), (2, 2));
        let found = store.read(&[b], LATER).await;
        assert_eq!((store.inner().len(), store.pending()), (3, 0));
        assert!(matches!(&found[..], [Ok(Some(found))] if found.status == Status::Completed));
    }

    #[tokio::test]
    async fn all_pending_writes_can_be_applied_at_once() {
        let store = DelayedStore::new(MemoryStore::new());
        store.delayed_writes(DelayedWrites::After(usize::MAX));
        let claims = claims();
        drop(drop_after(1, store.write(&claims, LATER)).await);
        store.apply_pending().await;
        assert_eq!((store.inner().len(), store.pending()), (3, 0));
    }
}
