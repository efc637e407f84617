//! A store that commits effects applies them if and only if it applies their write.
//!
//! For stores whose [`Capabilities`](lambda_idempotency_core::capabilities::Capabilities) name effects.
//! [`effects_conformance!`](crate::effects_conformance) makes a test of each scenario.

mod kit;
mod scenarios;

use lambda_idempotency_core::{clock::BoxFuture, store::Store};

pub use kit::EffectsKit;
pub use scenarios::{
    a_fenced_write_applies_no_effect, a_fenced_write_with_a_refused_effect_is_fenced,
    a_refused_effect_applies_nothing, a_write_that_is_sent_again_applies_its_effects_once,
    a_write_whose_record_is_gone_applies_no_effect, committing_against_takeovers_has_one_winner,
    each_write_of_a_call_has_its_own_transaction, effects_are_applied_under_every_guard,
    effects_are_applied_with_their_write, effects_beside_a_deletion_are_refused,
};

/// A scenario: the store, and its effects.
pub type EffectsScenario = for<'a> fn(&'a dyn Store, &'a dyn EffectsKit) -> BoxFuture<'a, ()>;

/// Every scenario, with its name. Use this to run them without the macro.
pub const EFFECTS_SCENARIOS: &[(&str, EffectsScenario)] = &[
    ("effects_are_applied_with_their_write", |s, k| {
        Box::pin(effects_are_applied_with_their_write(s, k))
    }),
    ("a_fenced_write_applies_no_effect", |s, k| Box::pin(a_fenced_write_applies_no_effect(s, k))),
    ("a_write_whose_record_is_gone_applies_no_effect", |s, k| {
        Box::pin(a_write_whose_record_is_gone_applies_no_effect(s, k))
    }),
    ("a_refused_effect_applies_nothing", |s, k| Box::pin(a_refused_effect_applies_nothing(s, k))),
    ("a_fenced_write_with_a_refused_effect_is_fenced", |s, k| {
        Box::pin(a_fenced_write_with_a_refused_effect_is_fenced(s, k))
    }),
    ("a_write_that_is_sent_again_applies_its_effects_once", |s, k| {
        Box::pin(a_write_that_is_sent_again_applies_its_effects_once(s, k))
    }),
    ("effects_are_applied_under_every_guard", |s, k| {
        Box::pin(effects_are_applied_under_every_guard(s, k))
    }),
    ("each_write_of_a_call_has_its_own_transaction", |s, k| {
        Box::pin(each_write_of_a_call_has_its_own_transaction(s, k))
    }),
    ("effects_beside_a_deletion_are_refused", |s, k| {
        Box::pin(effects_beside_a_deletion_are_refused(s, k))
    }),
    ("committing_against_takeovers_has_one_winner", |s, k| {
        Box::pin(committing_against_takeovers_has_one_winner(s, k))
    }),
];

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
        $crate::effects_conformance! { @each [$(#[$attribute])+] [$make]
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
    (@each $attributes:tt $make:tt $($name:ident)+) => {
        $( $crate::effects_conformance! { @one $attributes $make $name } )+
    };
    (@one [$(#[$attribute:meta])+] [$make:expr] $name:ident) => {
        $(#[$attribute])+
        async fn $name() {
            let (store, kit) = ($make)().await;
            $crate::conformance::effects::$name(&store, &kit).await;
        }
    };
}
