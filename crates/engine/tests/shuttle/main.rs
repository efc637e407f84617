//! What the invocations of one process share, under every order of their steps.
//!
//! The sources of `process` are compiled once more, over the lock of [`shuttle`], which takes control
//! at each point where a thread could be interrupted. The smallest worlds are explored exhaustively,
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
    a_dropped_leader_strands_nobody, a_zombie_holds_nobody_up, each_leads_in_turn,
    followers_are_told,
};

const SEED: u64 = 20_261_121;
/// Polls after which a dropped leader has nothing left to do.
const POLLS: usize = 4;

fn run(scheduler: impl Scheduler + 'static, world: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    Runner::new(scheduler, config).run(world)
}

/// Random schedules, and schedules with few but well-placed interruptions.
fn explore(world: impl Fn() + Clone + Send + Sync + 'static) {
    run(RandomScheduler::new_from_seed(SEED, 1_000), world.clone());
    run(PctScheduler::new_from_seed(SEED, 4, 1_000), world);
}

/// Every schedule; returns how many there are.
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
fn one_leads_at_a_time_and_everybody_wakes() {
    explore(|| each_leads_in_turn::<Real>(4));
}

#[test]
fn a_leader_tells_its_followers() {
    explore(followers_are_told::<Real>);
}

#[test]
fn a_leader_may_be_dropped_anywhere() {
    for polls in 0..=POLLS {
        explore(move || a_dropped_leader_strands_nobody::<Real>(polls));
    }
}

#[test]
fn a_lapsed_lead_holds_nobody_up() {
    explore(a_zombie_holds_nobody_up::<Real>);
}

#[test]
fn what_is_remembered_is_bounded() {
    explore(bounds_hold::<Real>);
}

/// Asserts that the explorations find what `world` does wrong, and that it is the mistake expected.
fn caught(expected: &str, world: impl Fn() + Clone + Send + Sync + 'static) {
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| explore(world)))
        .err()
        .unwrap_or_else(|| panic!("no schedule shows the mistake: {expected}"));
    let formatted = found.downcast_ref::<String>().map(String::as_str);
    let message = found.downcast_ref::<&str>().copied().or(formatted).unwrap_or_default();
    assert!(message.contains(expected), "it shows another mistake: {message}");
}

#[test]
fn mutants_are_caught() {
    use mutants::*;
    caught("deadlock", || each_leads_in_turn::<WakesNobody>(3));
    caught("deadlock", || each_leads_in_turn::<WakesTooEarly>(3));
    caught("a follower was not told", followers_are_told::<TellsNobody>);
    caught("two work on one key", || each_leads_in_turn::<LooksThenTakes>(3));
    caught("two work on one key", a_zombie_holds_nobody_up::<FreesForOthers>);
    caught("nobody follows a lead that has lapsed", a_zombie_holds_nobody_up::<NeverLapses>);
    caught("deadlock", a_zombie_holds_nobody_up::<LeavesFollowersBehind>);
    caught("deadlock", || a_dropped_leader_strands_nobody::<StaysWhenCancelled>(2));
    caught("entries", bounds_hold::<TrimsLater>);
}
