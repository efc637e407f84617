//! What the scenarios are written with: effects that count, and keys that are held.

use lambda_idempotency_core::{
    clock::BoxFuture,
    effects::{Effects, RefusalReason},
    record::IdempotencyRecord,
    store::{Guard, Store, Verdict},
};

use super::super::kit::{Slot, completed, in_progress, token, write_all};

/// Makes effects for a store under test, and says how often they were applied.
pub trait EffectsKit: Send + Sync {
    /// Effects of the store's type, one for each of `names`, in this order. Each adds 1 to the count of
    /// its name, which begins at 0. The one at position `refused` has a condition that never holds.
    fn adding(&self, names: &[String], refused: Option<usize>) -> Effects;

    /// The count of a name.
    fn count<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64>;
}

/// Names that no other test has, and how often they were counted.
pub(super) struct Names<'a> {
    kit: &'a dyn EffectsKit,
    names: Vec<String>,
}

impl<'a> Names<'a> {
    pub(super) fn fresh(kit: &'a dyn EffectsKit, count: usize) -> Self {
        Self { kit, names: (0..count).map(|_| format!("conformance-{}", token())).collect() }
    }

    pub(super) fn effects(&self) -> Option<Effects> {
        Some(self.kit.adding(&self.names, None))
    }

    pub(super) fn refused(&self, position: usize) -> Option<Effects> {
        Some(self.kit.adding(&self.names, Some(position)))
    }

    pub(super) async fn were_applied(&self, times: u64, why: &str) {
        for (position, name) in self.names.iter().enumerate() {
            let count = self.kit.count(name).await;
            assert_eq!(count, times, "{why}: effect {position} was applied {count} times");
        }
    }
}

/// A key that this owner holds, and the record with which it completes it.
pub(super) async fn held(
    store: &dyn Store,
) -> (Slot<'_>, IdempotencyRecord, Guard, IdempotencyRecord) {
    let owner = token();
    let held = in_progress(owner);
    let slot = Slot::with(store, &held).await;
    (slot, held, Guard::OwnedBy(owner), completed(owner, "1"))
}

pub(super) async fn commit(
    slot: &Slot<'_>,
    guard: Guard,
    record: &IdempotencyRecord,
    effects: Option<Effects>,
) -> Verdict {
    let write = slot.asks(guard, Some(record)).with_effects(effects);
    write_all(slot.store, &[write]).await.pop().expect("`write_all` checked that there is one")
}

#[track_caller]
pub(super) fn refused(verdict: Verdict, position: usize) {
    match verdict {
        Verdict::EffectRefused(refused) => {
            assert_eq!(refused.position(), Some(position), "the refused effect is named");
            let reason = refused.reason();
            assert_eq!(reason, RefusalReason::ConditionFailed, "its condition did not hold");
        }
        other => panic!("effect {position} is refused, and nothing is applied; got {other:?}"),
    }
}
