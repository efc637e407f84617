//! A store that commits effects applies them if and only if it applies their write.
//!
//! For stores whose [`Capabilities`](lambda_idempotency_core::store::Capabilities) name effects.
//! [`effects_conformance!`](crate::effects_conformance) makes a test of each scenario.

use futures_util::future::{join, join_all};
use lambda_idempotency_core::{
    clock::BoxFuture,
    effects::{Effects, RefusalReason},
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store, StoreErrorKind, Verdict},
};

use super::kit::{
    Slot, completed, explain, found, in_progress, now, secs, token, write_all, written,
};

/// Makes effects for a store under test, and says how often they were applied.
pub trait EffectsKit: Send + Sync {
    /// Effects of the store's type, one for each of `names`, in this order. Each adds 1 to the count of
    /// its name, which begins at 0. The one at position `refused` has a condition that never holds.
    fn adding(&self, names: &[String], refused: Option<usize>) -> Effects;

    /// The count of a name.
    fn count<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64>;
}

/// Names that no other test has, and how often they were counted.
struct Names<'a> {
    kit: &'a dyn EffectsKit,
    names: Vec<String>,
}

impl<'a> Names<'a> {
    fn fresh(kit: &'a dyn EffectsKit, count: usize) -> Self {
        Self { kit, names: (0..count).map(|_| format!("conformance-{}", token())).collect() }
    }

    fn effects(&self) -> Option<Effects> {
        Some(self.kit.adding(&self.names, None))
    }

    fn refused(&self, position: usize) -> Option<Effects> {
        Some(self.kit.adding(&self.names, Some(position)))
    }

    async fn were_applied(&self, times: u64, why: &str) {
        for (position, name) in self.names.iter().enumerate() {
            let count = self.kit.count(name).await;
            assert_eq!(count, times, "{why}: effect {position} was applied {count} times");
        }
    }
}

/// A key that this owner holds, and the record with which it completes it.
async fn held(store: &dyn Store) -> (Slot<'_>, IdempotencyRecord, Guard, IdempotencyRecord) {
    let owner = token();
    let held = in_progress(owner);
    let slot = Slot::with(store, &held).await;
    (slot, held, Guard::OwnedBy(owner), completed(owner, "1"))
}

async fn commit(
    slot: &Slot<'_>,
    guard: Guard,
    record: &IdempotencyRecord,
    effects: Option<Effects>,
) -> Verdict {
    let write = slot.asks(guard, Some(record)).with_effects(effects);
    write_all(slot.store, &[write]).await.pop().expect("`write_all` checked that there is one")
}

#[track_caller]
fn refused(verdict: Verdict, position: usize) {
    match verdict {
        Verdict::EffectRefused(refused) => {
            assert_eq!(refused.position(), Some(position), "the refused effect is named");
            let reason = refused.reason();
            assert_eq!(reason, RefusalReason::ConditionFailed, "its condition did not hold");
        }
        other => panic!("effect {position} is refused, and nothing is applied; got {other:?}"),
    }
}

/// A scenario: the store, and its effects.
pub type EffectsScenario = for<'a> fn(&'a dyn Store, &'a dyn EffectsKit) -> BoxFuture<'a, ()>;

/// Every scenario, with its name. Use this to run them without the macro.
pub const EFFECTS_SCENARIOS: &[(&str, EffectsScenario)] = crate::__effects! { __effects_list [] };

/// Makes a test of every scenario for effects: as [`store_conformance!`](crate::store_conformance), for a
/// store that commits effects. `make` returns the store and its [`EffectsKit`].
///
/// ```
/// use std::{collections::HashMap, sync::{Arc, Mutex}};
///
/// use lambda_idempotency_core::{
///     clock::BoxFuture, effects::Effects, memory::{MemoryEffects, MemoryStore},
/// };
/// use lambda_idempotency_testkit::conformance::effects::EffectsKit;
///
/// /// Counts in memory.
/// #[derive(Clone, Default)]
/// struct Counts(Arc<Mutex<HashMap<String, u64>>>);
///
/// impl EffectsKit for Counts {
///     fn adding(&self, names: &[String], refused: Option<usize>) -> Effects {
///         let mut effects = MemoryEffects::default();
///         for (position, name) in names.iter().cloned().enumerate() {
///             let counts = Arc::clone(&self.0);
///             effects.add_if(move || refused != Some(position), move || {
///                 *counts.lock().unwrap().entry(name.clone()).or_default() += 1;
///             });
///         }
///         Effects::new(effects)
///     }
///
///     fn count<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
///         let count = self.0.lock().unwrap().get(name).copied().unwrap_or_default();
///         Box::pin(async move { count })
///     }
/// }
///
/// mod effects {
///     use super::*;
///     lambda_idempotency_testkit::effects_conformance!(
///         || async { (MemoryStore::new(), Counts::default()) }
///     );
/// }
/// ```
#[macro_export]
macro_rules! effects_conformance {
    ($make:expr $(,)?) => {
        $crate::effects_conformance! { $make, #[tokio::test] }
    };
    ($make:expr, $(#[$attribute:meta])+) => {
        $crate::__effects! { __effects_test [[$(#[$attribute])+] [$make]] }
    };
}

/// Calls `$crate::$callback!` with `$arguments` and the list of all scenarios.
#[doc(hidden)]
#[macro_export]
macro_rules! __effects {
    ($callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments
            effects_are_applied_with_their_write
            a_fenced_write_applies_no_effect
            a_write_whose_record_is_gone_applies_no_effect
            a_refused_effect_applies_nothing
            a_fenced_write_with_a_refused_effect_is_fenced
            a_write_that_is_sent_again_applies_its_effects_once
            effects_are_applied_under_every_guard
            each_write_of_a_call_has_its_own_transaction
            effects_beside_a_deletion_are_refused
            committing_against_takeovers_has_one_winner
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __effects_test {
    ($arguments:tt $($name:ident)+) => {
        $( $crate::__effects_test! { @one $arguments $name } )+
    };
    (@one [[$(#[$attribute:meta])+] [$make:expr]] $name:ident) => {
        $(#[$attribute])+
        async fn $name() {
            let (store, kit) = ($make)().await;
            $crate::conformance::effects::$name(&store, &kit).await;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __effects_list {
    ([] $($name:ident)+) => {
        &[$( (stringify!($name), |store, kit| Box::pin($name(store, kit))) ),+]
    };
}

/// A completion and its effects are applied together.
pub async fn effects_are_applied_with_their_write(store: &dyn Store, kit: &dyn EffectsKit) {
    assert!(store.capabilities().effects.is_some(), "the store states its effects");
    for count in [1, 3, 20] {
        let (slot, _, guard, done) = held(store).await;
        let names = Names::fresh(kit, count);
        written(commit(&slot, guard, &done, names.effects()).await, "the owner may complete");
        slot.holds(Some(&done), "the completion is stored").await;
        names.were_applied(1, "the effects of a write that was applied").await;
    }
}

/// A worker that lost its key commits nothing: neither record nor effects.
pub async fn a_fenced_write_applies_no_effect(store: &dyn Store, kit: &dyn EffectsKit) {
    let (slot, there, _, done) = held(store).await;
    let names = Names::fresh(kit, 2);
    for guard in [Guard::OwnedBy(token()), Guard::Absent] {
        let verdict = commit(&slot, guard, &done, names.effects()).await;
        found(verdict, Some(&there), "a write that is fenced finds the successor's record");
        slot.holds(Some(&there), "a write that is fenced changes nothing").await;
        names.were_applied(0, "the effects of a write that was fenced").await;
    }
}

/// If the record is gone, the worker that claims the key next does the work again: the effects of the one before
/// must not be applied as well.
pub async fn a_write_whose_record_is_gone_applies_no_effect(
    store: &dyn Store,
    kit: &dyn EffectsKit,
) {
    let (slot, owner, names) = (Slot::fresh(store), token(), Names::fresh(kit, 2));
    let done = completed(owner, "1");
    let verdict = commit(&slot, Guard::OwnedBy(owner), &done, names.effects()).await;
    found(verdict, None, "a write whose record is gone finds nothing");
    slot.holds(None, "and stores nothing").await;
    names.were_applied(0, "the effects of a write whose record is gone").await;
}

/// If one effect is refused, neither the others nor the record are applied, and the key can be released.
pub async fn a_refused_effect_applies_nothing(store: &dyn Store, kit: &dyn EffectsKit) {
    for position in [0, 2] {
        let (slot, there, guard, done) = held(store).await;
        let names = Names::fresh(kit, 3);
        refused(commit(&slot, guard.clone(), &done, names.refused(position)).await, position);
        slot.holds(Some(&there), "the record is as it was before a refused effect").await;
        names.were_applied(0, "the effects beside a refused one").await;
        slot.accepts(guard, None, "its owner still holds the key").await;
    }
}

/// A worker that lost its key learns that, and not that its effect is refused: the successor may have
/// had the same effect.
pub async fn a_fenced_write_with_a_refused_effect_is_fenced(
    store: &dyn Store,
    kit: &dyn EffectsKit,
) {
    let (slot, there, _, done) = held(store).await;
    let names = Names::fresh(kit, 2);
    let verdict = commit(&slot, Guard::OwnedBy(token()), &done, names.refused(0)).await;
    found(verdict, Some(&there), "who is fenced is told so, whatever its effects are");
    names.were_applied(0, "the effects of a write that was fenced").await;
}

/// A write that is sent again, because its answer was lost, applies its effects once.
pub async fn a_write_that_is_sent_again_applies_its_effects_once(
    store: &dyn Store,
    kit: &dyn EffectsKit,
) {
    let (slot, _, guard, done) = held(store).await;
    let (names, mut verdicts) = (Names::fresh(kit, 2), Vec::new());
    let write = slot.asks(guard, Some(&done)).with_effects(names.effects());
    for _ in 0..3 {
        verdicts.extend(write_all(store, std::slice::from_ref(&write)).await);
    }
    let [first, rest @ ..] = &verdicts[..] else { panic!("`write_all` counts verdicts") };
    assert!(matches!(first, Verdict::Written), "the first is applied; got {first:?}");
    for again in rest {
        let known = match again {
            Verdict::Written => true,
            Verdict::Found(there) => there.as_ref() == Some(&done),
            _ => false,
        };
        assert!(known, "the same write again is recognised; got {again:?}");
    }
    names.were_applied(1, "the effects of a write that was sent three times").await;
}

/// Effects are committed under `Absent`, which creates a record, and under `Unchanged`, which replaces one.
pub async fn effects_are_applied_under_every_guard(store: &dyn Store, kit: &dyn EffectsKit) {
    let names = Names::fresh(kit, 2);
    let (slot, first) = (Slot::fresh(store), completed(token(), "1"));
    let verdict = commit(&slot, Guard::Absent, &first, names.effects()).await;
    written(verdict, "there is no record, so the write is applied");
    names.were_applied(1, "the effects of a write under `Absent`").await;
    let second = completed(token(), "2");
    let seen = Guard::Unchanged(RecordVersion::of(&first));
    let verdict = commit(&slot, seen.clone(), &second, names.effects()).await;
    written(verdict, "the record is the one that was read");
    names.were_applied(2, "the effects of a write under `Unchanged`").await;
    let verdict = commit(&slot, seen, &completed(token(), "3"), names.effects()).await;
    found(verdict, Some(&second), "the record is no longer the one that was read");
    names.were_applied(2, "the effects of a write that was refused").await;
}

/// The writes of a call are independent: each has a transaction of its own.
pub async fn each_write_of_a_call_has_its_own_transaction(store: &dyn Store, kit: &dyn EffectsKit) {
    let mut worlds = Vec::new();
    for _ in 0..12 {
        worlds.push((held(store).await, Names::fresh(kit, 2)));
    }
    let mut writes = Vec::new();
    for (number, ((slot, _, guard, done), names)) in worlds.iter().enumerate() {
        let (guard, effects) = match number % 4 {
            0 => (guard.clone(), names.effects()),
            1 => (guard.clone(), names.refused(1)),
            2 => (Guard::OwnedBy(token()), names.effects()),
            _ => (guard.clone(), None),
        };
        writes.push(slot.asks(guard, Some(done)).with_effects(effects));
    }
    let verdicts = write_all(store, &writes).await;
    for (number, (((slot, there, _, done), names), verdict)) in
        worlds.iter().zip(verdicts).enumerate()
    {
        let (stored, times) = match number % 4 {
            0 => {
                written(verdict, "a write with effects is applied");
                (done, 1)
            }
            1 => {
                refused(verdict, 1);
                (there, 0)
            }
            2 => {
                found(verdict, Some(there), "a fenced write finds the record of the other");
                (there, 0)
            }
            _ => {
                written(verdict, "a write without effects is applied");
                (done, 0)
            }
        };
        slot.holds(Some(stored), "each write of a call has its own result").await;
        names.were_applied(times, "the effects of one write of a call").await;
    }
}

/// A deletion has no effects: a record that was deleted could not say that they were applied.
pub async fn effects_beside_a_deletion_are_refused(store: &dyn Store, kit: &dyn EffectsKit) {
    let (slot, there, guard, _) = held(store).await;
    let names = Names::fresh(kit, 1);
    let write = slot.asks(guard, None).with_effects(names.effects());
    match write_all(store, &[write]).await.pop() {
        Some(Verdict::Unknown(error)) => assert!(
            error.kind() == StoreErrorKind::Refused && !error.may_have_applied(),
            "a deletion with effects is refused, and not in doubt; got {}",
            explain(&error)
        ),
        other => panic!("a deletion with effects is refused; got {other:?}"),
    }
    slot.holds(Some(&there), "a refused write changes nothing").await;
    names.were_applied(0, "the effects of a refused write").await;
}

/// An owner commits while others take the key over. Either it commits its effects, or one of them takes
/// over and the effects are not applied.
pub async fn committing_against_takeovers_has_one_winner(store: &dyn Store, kit: &dyn EffectsKit) {
    for _ in 0..8 {
        let owner = token();
        let mut lapsed = in_progress(owner);
        lapsed.lease_until = Some(now().minus(secs(60)));
        let slot = Slot::with(store, &lapsed).await;
        let (names, done) = (Names::fresh(kit, 2), completed(owner, "1"));
        let seen = Guard::Unchanged(RecordVersion::of(&lapsed));
        let claims: Vec<_> = (0..5).map(|_| in_progress(token())).collect();
        let takeovers = join_all(claims.iter().map(|claim| slot.write(seen.clone(), Some(claim))));
        let commits = commit(&slot, Guard::OwnedBy(owner), &done, names.effects());
        let (verdict, others) = join(commits, takeovers).await;
        let taken = others.iter().any(|verdict| matches!(verdict, Verdict::Written));
        let committed = matches!(verdict, Verdict::Written);
        assert!(
            committed != taken,
            "either the owner commits or one of the others takes over; got {verdict:?}, {others:?}"
        );
        names.were_applied(u64::from(committed), "the effects of an owner that raced").await;
    }
}
