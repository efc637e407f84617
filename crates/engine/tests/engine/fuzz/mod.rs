//! Whole invocations at random: batches, policies, faults of the store, deaths, redeliveries, and several
//! invocations of one process at once. What is checked must hold whatever happens ([`judge`]).
//!
//! A handler's claim says how much its record is suspected, with store faults as without them: quarantine
//! is checked exactly. A handler is left out only if it runs without a claim, or if a fault of
//! the store has replaced its claim.
//!
//! `PROPTEST_CASES=20000 cargo test --workspace --test engine fuzz` runs more of them.

#![allow(clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod contract;
mod judge;
mod messages;
mod scenario;
mod strategies;
mod world;

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use lambda_idempotency_core::clock::Clock as _;
use proptest::prelude::*;

use scenario::{Invocation, Kind, Plan, Scenario};
use strategies::{killing, scenario, starving, streaming};
use world::World;

/// Plays a scenario. Afterwards nothing goes wrong any more, and each record has to come through.
async fn play(world: &Arc<World>) {
    let scenario = world.scenario.clone();
    let mut engines = [world.engine(), world.engine()];
    let innocent = if scenario.all_start { scenario.innocent() } else { Vec::new() };
    let is_done = |key: &u8| world.acknowledged.lock().unwrap().contains(key);
    for (gap, wave) in &scenario.waves {
        if scenario.all_start && innocent.iter().all(is_done) {
            break;
        }
        let all = wave.iter().map(|planned| world.invoke(&engines[planned.process], planned));
        join_all(all).await;
        for (engine, process) in engines.iter_mut().zip(&world.processes) {
            if process.is_dead.swap(false, Ordering::Relaxed) {
                *engine = world.engine();
            }
        }
        // A loose sleep would be one too many.
        world.clock.sleep(Duration::from_millis(*gap)).await;
    }
    for key in innocent.iter().filter(|key| !is_done(key)) {
        world.wrong.say(format!("key {key} is never acknowledged"));
    }
    let quiet = scenario.faults.is_empty()
        && world.strict
        && scenario.policy.mode.claims()
        // The effect of a handler that blocks beyond the deadline is too late to be recorded.
        && world.blocked.lock().unwrap().is_zero()
        && !scenario.has_deaths();
    if quiet {
        for (key, effects) in &*world.effects.lock().unwrap() {
            if *effects > 1 {
                let stored = world.stored(&world::key(*key));
                world.wrong.say(format!("key {key} has had {effects} effects: {stored:?}"));
            }
        }
    }
    // No faults from now on: each record must be processed.
    world.store.heal();
    world.post.heal();
    let keys: BTreeSet<(u8, u8)> = scenario
        .waves
        .iter()
        .flat_map(|(_, wave)| wave)
        .flat_map(|planned| &planned.records)
        .filter(|plan| matches!(plan.kind, Kind::Keyed))
        .map(|plan| (plan.key, plan.payload))
        .collect();
    world.clock.advance(Duration::from_secs(2000));
    let records: Vec<Plan> =
        keys.iter().map(|(key, payload)| Plan::quick(*key, *payload)).collect();
    if records.is_empty() {
        return;
    }
    let last = Invocation { records, process: 0, dies_after: None, spurious: 0 };
    let mut outcomes = Vec::new();
    // A suspect that was lost three times may be held back at two receives in a row: if the one that decided on the first side
    // is done then, another one decides, whose receives may be odd again. At the third it starts.
    for _ in 0..3 {
        outcomes = world.invoke(&engines[0], &last).await;
        world.clock.advance(Duration::from_secs(100));
    }
    for (plan, outcome) in last.records.iter().zip(&outcomes) {
        if !outcome.is_acknowledged() && !outcome.is_final() {
            world.wrong.say(format!(
                "key {} is stuck: {outcome:?} over {:?}",
                plan.key,
                world.stored(&world::key(plan.key))
            ));
        }
    }
    world.judge_posts(last.records.iter().map(|plan| plan.key));
    drop(engines);
    if world.clock.sleepers() > 0 {
        world.wrong.say(format!("{} timers are left", world.clock.sleepers()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_must_hold_holds_whatever_happens(scenario in scenario()) {
        prop_assert_eq!(wrong(scenario), Vec::<String>::new());
    }

    #[test]
    fn what_must_hold_holds_beside_records_that_kill_their_process(scenario in killing()) {
        prop_assert_eq!(wrong(scenario), Vec::<String>::new());
    }

    #[test]
    fn no_record_is_passed_over_for_ever_beside_records_that_kill(scenario in starving()) {
        prop_assert_eq!(wrong(scenario), Vec::<String>::new());
    }

    #[test]
    fn what_must_hold_holds_where_a_stream_delivers_the_same_records_again(scenario in streaming()) {
        prop_assert_eq!(wrong(scenario), Vec::<String>::new());
    }
}

/// Plays a scenario in simulated time, and returns what was wrong.
fn wrong(scenario: Scenario) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let world = World::new(scenario);
    runtime.block_on(world.clock.clone().drive(play(&world)));
    world.wrong.all()
}
