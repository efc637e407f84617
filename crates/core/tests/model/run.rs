//! Running the checker, and saying what it found.

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use crate::{
    explorer::Explorer,
    protocol::{Protocol, Real},
    setup::Setup,
    witness::EVENTS,
};

/// Explores every state, prints how many there are and what happened on the way, and fails with
/// the steps to the first state that breaks a property.
pub(crate) fn hold(setup: Setup) {
    let begin = Instant::now();
    let checker = Explorer::<Real>::new(setup)
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    checker.assert_properties();
    let (setup, witness) = (&checker.model().setup, &checker.model().setup.witness);
    println!(
        "{}: {} unique states of {} generated, up to {} steps deep, in {:.1?}",
        setup.name,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        begin.elapsed()
    );
    for event in EVENTS.into_iter().filter(|event| witness.count(*event) > 0) {
        println!("    {:>9} x {event:?}", witness.count(event));
    }
    for event in setup.expect {
        assert!(witness.count(*event) > 0, "{}: {event:?} never happened", setup.name);
    }
}

/// Explores a mutant until each of `properties` is broken, and fails if one is not.
pub(crate) fn catch<P: Protocol>(setup: Setup, properties: &[&'static str]) {
    let wanted = HasDiscoveries::AllOf(properties.iter().copied().collect());
    let checker = Explorer::<P>::new(setup).checker().finish_when(wanted).spawn_bfs().join();
    let name = std::any::type_name::<P>().rsplit("::").next().unwrap();
    for property in properties {
        let steps = checker.assert_any_discovery(property).into_actions();
        println!(
            "{name} breaks \"{property}\" after {} steps, {} states: {steps:?}",
            steps.len(),
            checker.unique_state_count()
        );
    }
}
