//! Runs the checker and reports the result.

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use crate::{
    documented,
    explorer::{Action, Explorer},
    setup::Setup,
};

/// Explores every state. Fails with the steps to the first state that breaks a property, if an expected
/// event did not occur, or if the documentation differs.
pub(crate) fn hold(setup: Setup) {
    let begin = Instant::now();
    let checker = Explorer { setup: setup.grown() }
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    if let Some((property, path)) = checker.discoveries().into_iter().next() {
        for (state, action) in path.into_vec() {
            println!("{}: {action:?}; {:?}", state.now, state.source);
        }
        panic!("{}: \"{property}\" does not hold", checker.model().setup.name);
    }
    let setup = &checker.model().setup;
    let seen = setup.witness.seen();
    println!("{}: {:.1?}; {seen:?}", setup.name, begin.elapsed());
    for event in setup.expect {
        assert!(seen.contains(event), "{}: {event} did not occur", setup.name);
    }
    let receives = setup.witness.receives();
    assert_eq!(receives, setup.receives, "{}: the most receives after a fault", setup.name);
    if setup.poison {
        assert_eq!(setup.witness.harm(), setup.harm, "{}: the most harm", setup.name);
    }
    documented::world(setup, checker.unique_state_count(), checker.max_depth());
}

/// Leaves a rule out, and prints the shortest steps that break the property. Fails if it holds.
pub(crate) fn catch(rule: &'static str, property: &'static str, setup: impl Fn() -> Setup) {
    let world = || setup().with(|world| world.left_out = Some(rule));
    let steps = shortest(&world, property)
        .unwrap_or_else(|| panic!("without {rule:?} \"{property}\" still holds"));
    println!("without {rule:?} \"{property}\" breaks in {} steps: {steps:?}", steps.len());
    documented::mutant(rule, property);
}

/// Fails if one of these properties holds, although no rule is left out.
pub(crate) fn lose(properties: &[&'static str], setup: impl Fn() -> Setup) {
    for property in properties {
        let is_kept = |name: &&&str| *name != property;
        let world = || {
            setup().with(|world| {
                world.lost = properties.iter().filter(is_kept).copied().collect::<Vec<_>>().leak()
            })
        };
        let steps = shortest(&world, property);
        let steps = steps.unwrap_or_else(|| panic!("\"{property}\" holds"));
        println!("\"{property}\" breaks in {} steps: {steps:?}", steps.len());
    }
}

/// The steps of a path that breaks the property, found breadth first.
fn shortest(setup: &impl Fn() -> Setup, property: &'static str) -> Option<Vec<Action>> {
    let wanted = HasDiscoveries::AnyOf([property].into());
    let explorer = Explorer { setup: setup() };
    let checker = explorer.checker().finish_when(wanted).spawn_bfs().join();
    checker.discovery(property).map(stateright::Path::into_actions)
}
