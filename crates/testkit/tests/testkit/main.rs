//! The conformance suites on the memory store and on broken stores, and the faults that tests inject.

#![allow(clippy::unwrap_used, reason = "a test")]

mod broken_store;
mod browsing;
mod effects;
mod faults;
mod memory_store;
mod mutants;
mod tcp;

use std::{cell::Cell, collections::BTreeSet, fmt::Debug, panic::AssertUnwindSafe, sync::Once};

use futures_util::FutureExt as _;

thread_local! {
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a scenario panics. Its message is not printed.
async fn fails(scenario: impl Future<Output = ()>) -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_EXPECTED.get() {
                hook(panic);
            }
        }));
    });
    IS_EXPECTED.set(true);
    let ended = AssertUnwindSafe(scenario).catch_unwind().await;
    IS_EXPECTED.set(false);
    ended.is_err()
}

/// Asserts that each bug makes the scenarios fail that are named for it, that each scenario finds a bug, and that a store
/// without one passes. `failing` tells the scenarios that fail with a bug.
async fn assert_found<B: Copy + Debug>(
    bugs: &[(B, &[&'static str])],
    without: B,
    all: impl Iterator<Item = &'static str>,
    failing: impl AsyncFn(B, &[&'static str]) -> Vec<&'static str>,
) {
    let (mut missed, mut idle) = (Vec::new(), all.collect::<BTreeSet<_>>());
    for (bug, named) in bugs {
        let failing = failing(*bug, named).await;
        missed.extend(named.iter().filter(|one| !failing.contains(one)).map(|one| (bug, one)));
        idle.retain(|scenario| !failing.contains(scenario));
    }
    assert!(missed.is_empty(), "these scenarios pass with a bug: {missed:#?}");
    assert!(idle.is_empty(), "no bug makes these scenarios fail: {idle:#?}");
    assert_eq!(failing(without, &[]).await, [""; 0], "they fail without a bug");
}
