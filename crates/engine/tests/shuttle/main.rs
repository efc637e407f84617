//! The state that the invocations of one process share, in every order of their steps.
//!
//! The sources of `process` are compiled again, with the lock of [`shuttle`], which decides at each
//! point where a thread could be interrupted. The smallest worlds are explored exhaustively,
//! larger ones by random and by priority-based schedules, with fixed seeds. A follower that is never
//! woken shows as a deadlock. Mutants show that each check can fail.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    unreachable_pub,
    dead_code,
    reason = "a test, and sources that are used elsewhere"
)]

use lambda_idempotency_core::{clock, record};
use lambda_idempotency_keys::{self as key};
use shuttle::{
    Config, FailurePersistence, Runner,
    scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler},
};

mod bounds;
mod process;
mod protocol;
mod single_flight;

use bounds::bounds_hold;
use process::mutants;
use protocol::Real;
use single_flight::{
    a_dropped_leader_wakes_its_followers, an_expired_leader_does_not_block_others,
    each_leads_in_turn, followers_get_the_record,
};

const SEED: u64 = 20_261_121;
/// The number of polls after which a leader has ended.
const POLLS: usize = 4;

fn run(scheduler: impl Scheduler + 'static, world: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    Runner::new(scheduler, config).run(world)
}

/// Runs random schedules, and schedules with few interruptions at chosen priorities.
fn explore(world: impl Fn() + Clone + Send + Sync + 'static) {
    run(RandomScheduler::new_from_seed(SEED, 1_000), world.clone());
    run(PctScheduler::new_from_seed(SEED, 4, 1_000), world);
}

/// Runs every schedule, and returns their number.
fn exhaust(world: impl Fn() + Send + Sync + 'static) -> usize {
    run(DfsScheduler::new(None, false), world)
}

#[test]
fn two_invocations_in_every_order() {
    let schedules = exhaust(|| each_leads_in_turn::<Real>(2));
    println!("{schedules} schedules");
    assert!(schedules > 100, "{schedules}");
}

#[test]
fn one_invocation_leads_at_a_time_and_all_followers_wake() {
    explore(|| each_leads_in_turn::<Real>(4));
}

#[test]
fn followers_get_the_leaders_record() {
    explore(followers_get_the_record::<Real>);
}

#[test]
fn a_leader_may_be_dropped_anywhere() {
    for polls in 0..=POLLS {
        explore(move || a_dropped_leader_wakes_its_followers::<Real>(polls));
    }
}

#[test]
fn an_expired_lead_does_not_block_others() {
    explore(an_expired_leader_does_not_block_others::<Real>);
}

#[test]
fn the_cache_keeps_its_bounds() {
    explore(bounds_hold::<Real>);
}

/// Asserts that the explorations find the expected mistake of `world`.
fn caught(expected: &str, world: impl Fn() + Clone + Send + Sync + 'static) {
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| explore(world)))
        .err()
        .unwrap_or_else(|| panic!("no schedule finds the mistake: {expected}"));
    let formatted = found.downcast_ref::<String>().map(String::as_str);
    let message = found.downcast_ref::<&str>().copied().or(formatted).unwrap_or_default();
    assert!(message.contains(expected), "a schedule finds another mistake: {message}");
}

#[test]
fn mutants_are_caught() {
    use mutants::*;
    caught("deadlock", || each_leads_in_turn::<WakesNoFollower>(3));
    caught("deadlock", || each_leads_in_turn::<WakesTooEarly>(3));
    caught("a follower did not get the record", followers_get_the_record::<DropsTheRecord>);
    caught("two invocations lead one key", || each_leads_in_turn::<ChecksThenTakes>(3));
    caught(
        "two invocations lead one key",
        an_expired_leader_does_not_block_others::<FreesAnothersLead>,
    );
    caught(
        "an invocation follows an expired lead",
        an_expired_leader_does_not_block_others::<NeverExpires>,
    );
    caught("deadlock", an_expired_leader_does_not_block_others::<ForgetsFollowers>);
    caught("deadlock", || a_dropped_leader_wakes_its_followers::<StaysWhenCancelled>(2));
    caught("entries", bounds_hold::<TrimsLater>);
}
