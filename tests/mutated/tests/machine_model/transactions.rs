//! Worlds in which effects are committed with their completion, and what breaks without the rules for that.

use std::time::Duration;

use lambda_idempotency_core::policy::{Lease, Mode};

use crate::{
    properties::{ACKNOWLEDGED_LAST, COMMITTED_ONCE},
    rules::Rule,
    run::{catch, hold},
    setup::Setup,
    world::Faults,
    worlds::NONE,
};

fn alone() -> Setup {
    Setup::new("a transaction", &[0])
        .with(|world| {
            world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, refusals: 1, ..NONE };
            world.expect = &["death", "late write", "refused effect", "failed", "replayed"];
        })
        .policy(|policy| policy.mode = Mode::Transactional)
}

/// A short lease ends while a commit is on its way, and another process takes over.
fn overtaken() -> Setup {
    Setup::new("transactions of two processes", &[0, 0])
        .with(|world| {
            (world.processes, world.batch) = (2, 1);
            world.timeout = Some(Duration::from_secs(4));
            world.takes = Duration::from_millis(1_500);
            world.receives = 3;
            world.faults = Faults { losses: 1, late: 1, delays: 2, ..NONE };
            world.expect = &["late write", "takeover", "renewal", "fenced", "busy", "replayed"];
        })
        .policy(|policy| {
            policy.mode = Mode::Transactional;
            policy.lease = Lease::Renewed { length: Duration::from_secs(2) };
        })
}

/// Handlers end shortly before the response is due, so that a commit is not sent a second time.
fn at_the_deadline() -> Setup {
    Setup::new("a transaction at the deadline", &[0])
        .with(|world| {
            world.takes = Duration::from_millis(5_350);
            world.faults = Faults { losses: 4, late: 1, ..NONE };
            world.expect = &["uncommitted", "replayed", "late write"];
        })
        .policy(|policy| policy.mode = Mode::Transactional)
}

tests! {
    a_transaction: hold(alone());
    transactions_of_two_processes: hold(overtaken());
    a_transaction_at_the_deadline: hold(at_the_deadline());
    effects_that_are_dropped_are_found: catch(Rule::CommitsEffects, COMMITTED_ONCE, alone);
    a_completion_without_its_effects_is_found: catch(Rule::RepeatsTheCommit, COMMITTED_ONCE, alone);
    a_refused_effect_that_counts_as_done_is_found: catch(Rule::RefusedEffectsFail, ACKNOWLEDGED_LAST, alone);
    an_unknown_commit_that_is_acknowledged_is_found:
        catch(Rule::ReturnsWhatIsUncommitted, ACKNOWLEDGED_LAST, at_the_deadline);
}
