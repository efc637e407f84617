//! The effects of a store in memory.

use std::fmt;

use crate::effects::{RefusalReason, RefusedEffect};

/// The effects that a [`MemoryStore`](super::MemoryStore) commits together with a write: functions, which
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
    pub(super) fn refused(&self) -> Option<RefusedEffect> {
        let position = self.0.iter().position(|effect| !(effect.holds)())?;
        Some(RefusedEffect::new(RefusalReason::ConditionFailed).at(position))
    }

    pub(super) fn apply(&self) {
        self.0.iter().for_each(|effect| (effect.apply)());
    }
}

impl fmt::Debug for MemoryEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryEffects({})", self.0.len())
    }
}
