//! Runs the checker and reports the result.

use std::{panic::Location, time::Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::{
    documented,
    explorer::{Action, Explorer},
    protocol::{Protocol, REAL},
    setup::Setup,
    witness::EVENTS,
};

/// Explores every state, and prints the number of states and of events. Fails with the steps to the first
/// state that breaks a property, if an expected event did not occur, or if the recorded figures differ.
pub(crate) fn hold(setup: Setup) {
    let begin = Instant::now();
    let checker = Explorer::new(REAL, setup)
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    checker.assert_properties();
    let (setup, witness) = (&checker.model().setup, &checker.model().setup.witness);
    let counts = EVENTS.iter().map(|event| (event, witness.count(*event)));
    let met = counts.filter(|(_, count)| *count > 0);
    let met: Vec<_> = met.map(|(event, count)| format!("{event:?} {count}")).collect();
    println!("{}: {:.1?}; {}", setup.name, begin.elapsed(), met.join(", "));
    for event in setup.expect {
        assert!(witness.count(*event) > 0, "{}: {event:?} did not occur", setup.name);
    }
    documented::configuration(setup, checker.unique_state_count(), checker.max_depth());
}

/// Explores a mutant to increasing depths until each of `properties` is broken, and prints the
/// shortest steps that break it. Fails if one of them holds.
#[track_caller]
pub(crate) fn catch(mutant: Protocol, setup: impl Fn() -> Setup, properties: &[&'static str]) {
    let place = Location::caller();
    for property in properties {
        let steps = shortest(mutant, &setup, property);
        let steps = steps.unwrap_or_else(|| panic!("{place} does not break \"{property}\""));
        println!("{place} breaks \"{property}\" in {} steps: {steps:?}", steps.len());
    }
}

/// The checker reports the last path that it found; the bound on the depth makes it a shortest one.
fn shortest(
    protocol: Protocol,
    setup: &dyn Fn() -> Setup,
    property: &'static str,
) -> Option<Vec<Action>> {
    let wanted = HasDiscoveries::AnyOf([property].into());
    for depth in 2.. {
        let checker = Explorer::new(protocol, setup())
            .checker()
            .finish_when(wanted.clone())
            .target_max_depth(depth)
            .spawn_bfs()
            .join();
        if let Some(path) = checker.discovery(property) {
            return Some(path.into_actions());
        }
        if checker.max_depth() < depth {
            break;
        }
    }
    None
}
