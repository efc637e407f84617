//! Worlds in which keys only exclude each other: each message runs, and nothing is kept of it.

use std::time::Duration;

use lambda_idempotency_core::policy::Mode;

use crate::{
    properties::ACKNOWLEDGED_LAST,
    rules::Rule,
    run::{catch, hold},
    setup::Setup,
    world::Faults,
    worlds::NONE,
};

/// Copies in a batch.
fn alone() -> Setup {
    let setup = Setup::new("a mutex", &[0, 0]).with(|world| {
        world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, ..NONE };
        world.expect = &["death", "late write", "failed", "executed", "takeover"];
    });
    setup.policy(|policy| policy.mode = Mode::Mutex)
}

fn together() -> Setup {
    let setup = Setup::new("a mutex of two processes", &[0, 0]).with(|world| {
        (world.processes, world.batch) = (2, 1);
        world.takes = Duration::from_millis(1_500);
        world.receives = 3;
        world.faults = Faults { losses: 1, late: 1, errors: 1, ..NONE };
        world.expect = &["busy", "late write", "failed", "executed", "takeover"];
    });
    setup.policy(|policy| policy.mode = Mode::Mutex)
}

tests! {
    a_mutex: hold(alone());
    a_mutex_of_two_processes: hold(together());
    a_mutex_that_answers_from_a_completion_is_found: catch(Rule::ForgetsWhatHasEnded, ACKNOWLEDGED_LAST, together);
    a_copy_that_is_answered_by_another_is_found: catch(Rule::CopiesOfAMutexRun, ACKNOWLEDGED_LAST, alone);
}
