//! Worlds in which nothing is claimed: completions are inserted together with their effects.

use std::time::Duration;

use lambda_idempotency_core::policy::Mode;

use crate::{
    properties::{ACKNOWLEDGED_LAST, COMMITTED_ONCE},
    rules::Rule,
    run::{catch, hold},
    setup::Setup,
    world::Faults,
    worlds::NONE,
};

fn optimistic(setup: Setup) -> Setup {
    setup.policy(|policy| policy.mode = Mode::Optimistic)
}

fn alone() -> Setup {
    let setup = Setup::new("an optimistic transaction", &[0]).with(|world| {
        world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, refusals: 1, ..NONE };
        world.expect = &["death", "late write", "refused effect", "failed", "replayed", "look"];
    });
    optimistic(setup)
}

/// Both run at the same time, and one commits.
fn together() -> Setup {
    let setup = Setup::new("optimistic transactions of two processes", &[0, 0]).with(|world| {
        (world.processes, world.batch) = (2, 1);
        world.takes = Duration::from_millis(1_500);
        world.faults = Faults { losses: 1, late: 1, errors: 1, ..NONE };
        world.expect = &["late write", "superseded", "replayed", "executed", "failed"];
    });
    optimistic(setup)
}

/// Handlers end shortly before the response is due, so that a commit is not sent a second time.
fn at_the_deadline() -> Setup {
    let setup = Setup::new("an optimistic transaction at the deadline", &[0]).with(|world| {
        world.takes = Duration::from_millis(5_200);
        world.faults = Faults { losses: 3, late: 1, ..NONE };
        world.expect = &["uncommitted", "replayed", "late write"];
    });
    optimistic(setup)
}

/// The payloads differ, so that one of the messages is not done.
fn other_payload() -> Setup {
    let setup = Setup::new("an optimistic transaction of another payload", &[0, 0]).with(|world| {
        (world.processes, world.batch) = (2, 1);
        world.messages[1].payload = 1;
        world.fingerprints = true;
        world.faults = Faults { losses: 1, ..NONE };
        world.expect = &["executed", "mismatch"];
    });
    optimistic(setup)
}

tests! {
    an_optimistic_transaction: hold(alone());
    optimistic_transactions_of_two_processes: hold(together());
    an_optimistic_transaction_at_the_deadline: hold(at_the_deadline());
    an_optimistic_transaction_of_another_payload: hold(other_payload());
    a_completion_that_replaces_what_it_meets_is_found: catch(Rule::AnswersFromWhatItMeets, COMMITTED_ONCE, together);
    a_completion_without_its_effects_is_found: catch(Rule::RepeatsTheCommit, COMMITTED_ONCE, alone);
    a_refused_effect_that_counts_as_done_is_found: catch(Rule::RefusedEffectsFail, ACKNOWLEDGED_LAST, alone);
    an_unknown_commit_that_is_acknowledged_is_found:
        catch(Rule::ReturnsWhatIsUncommitted, ACKNOWLEDGED_LAST, at_the_deadline);
}
