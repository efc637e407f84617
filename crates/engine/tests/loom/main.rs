//! The wakes of handlers by other threads, in every order that a processor may give them.
//!
//! `running/waking.rs` is compiled again with the types of [`loom`], which explores the interleavings and
//! the values that each load may return. The mutants weaken the flag of a task, and show that the check can fail.

#![allow(
    clippy::unwrap_used,
    clippy::duplicate_mod,
    dead_code,
    reason = "a test, which compiles a source of the engine again for each mutant"
)]

#[macro_use]
mod world;

mod real;
mod relaxed;
mod stored;
mod types;

#[test]
fn no_wake_of_another_thread_is_lost() {
    real::no_wake_is_lost();
}

#[test]
#[should_panic(expected = "a wake was lost")]
fn mutant_that_clears_the_flag_by_a_store_is_caught() {
    stored::no_wake_is_lost();
}

#[test]
#[should_panic(expected = "a wake was lost")]
fn mutant_that_swaps_the_flag_without_ordering_is_caught() {
    relaxed::no_wake_is_lost();
}
