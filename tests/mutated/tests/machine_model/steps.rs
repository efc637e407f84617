//! Worlds in which handlers have a step, and what breaks without the rule for that.

use std::time::Duration;

use lambda_idempotency_core::policy::Lease;

use crate::{
    properties::STEPS_KEPT,
    rules::Rule,
    run::{catch, hold},
    setup::Setup,
    world::Faults,
    worlds::NONE,
};

fn alone() -> Setup {
    Setup::new("a step", &[0]).with(|world| {
        world.steps = true;
        world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, refusals: 1, ..NONE };
        world.expect = &["death", "late write", "step", "step answered", "failed", "renewal"];
    })
}

/// A short lease ends while the step's write is on its way, and another process takes over.
fn overtaken() -> Setup {
    Setup::new("steps of two processes", &[0, 0])
        .with(|world| {
            world.steps = true;
            (world.processes, world.batch) = (2, 1);
            world.timeout = Some(Duration::from_secs(4));
            world.takes = Duration::from_millis(1_500);
            world.receives = 3;
            world.faults = Faults { losses: 1, late: 1, delays: 2, ..NONE };
            world.expect =
                &["late write", "takeover", "renewal", "step answered", "fenced", "replayed"];
        })
        .policy(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(2) })
}

tests! {
    a_step: hold(alone());
    steps_of_two_processes: hold(overtaken());
    a_step_that_returns_before_the_store_has_it_is_found: catch(Rule::StepsWaitForTheStore, STEPS_KEPT, alone);
}
