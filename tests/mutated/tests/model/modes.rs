//! Worlds of transactions, of steps, of optimistic mode and of mutexes, and what breaks without the rules for them.

use std::time::Duration;

use crate::{
    core::policy::Mode,
    properties::{ACKNOWLEDGED_LAST, COMMITTED_ONCE, STEPS_KEPT},
    run::{catch, hold},
    setup::Setup,
    world::Faults,
    worlds::{NONE, overtaken, together},
};

fn in_mode(setup: Setup, mode: Mode) -> Setup {
    setup.policy(|policy| policy.mode = mode)
}

fn transaction() -> Setup {
    let setup = Setup::new("a transaction", &[0]).with(|world| {
        world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, refusals: 1, ..NONE };
        world.expect = &["death", "late write", "refused effect", "failed", "replayed"];
    });
    in_mode(setup, Mode::Transactional)
}

fn overtaken_transaction() -> Setup {
    let setup = overtaken("transactions of two processes").with(|world| {
        world.faults = Faults { losses: 1, late: 1, delays: 2, ..NONE };
        world.expect = &["late write", "takeover", "renewal", "fenced", "busy", "replayed"];
    });
    in_mode(setup, Mode::Transactional)
}

/// Handlers end shortly before the response is due, so that a commit is not sent a second time.
fn transaction_at_the_deadline() -> Setup {
    let setup = Setup::new("a transaction at the deadline", &[0]).with(|world| {
        world.takes = Duration::from_millis(5_350);
        world.faults = Faults { losses: 4, late: 1, ..NONE };
        world.expect = &["uncommitted", "replayed", "late write"];
    });
    in_mode(setup, Mode::Transactional)
}

fn step() -> Setup {
    Setup::new("a step", &[0]).with(|world| {
        world.steps = true;
        world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, refusals: 1, ..NONE };
        world.expect = &["death", "late write", "step", "step answered", "failed", "renewal"];
    })
}

fn overtaken_step() -> Setup {
    overtaken("steps of two processes").with(|world| {
        world.steps = true;
        world.faults = Faults { losses: 1, late: 1, delays: 2, ..NONE };
        world.expect =
            &["late write", "takeover", "renewal", "step answered", "fenced", "replayed"];
    })
}

/// Nothing is claimed: a completion is inserted together with its effects.
fn optimistic() -> Setup {
    let setup = Setup::new("an optimistic transaction", &[0]).with(|world| {
        world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, refusals: 1, ..NONE };
        world.expect = &["death", "late write", "refused effect", "failed", "replayed", "look"];
    });
    in_mode(setup, Mode::Optimistic)
}

/// Both run at the same time, and one commits.
fn optimistic_together() -> Setup {
    let setup = together("optimistic transactions of two processes").with(|world| {
        world.takes = Duration::from_millis(1_500);
        world.receives = 1;
        world.faults = Faults { losses: 1, late: 1, errors: 1, ..NONE };
        world.expect = &["late write", "superseded", "replayed", "executed", "failed"];
    });
    in_mode(setup, Mode::Optimistic)
}

/// Handlers end shortly before the response is due, so that a commit is not sent a second time.
fn optimistic_at_the_deadline() -> Setup {
    let setup = Setup::new("an optimistic transaction at the deadline", &[0]).with(|world| {
        world.takes = Duration::from_millis(5_200);
        world.faults = Faults { losses: 3, late: 1, ..NONE };
        world.expect = &["uncommitted", "replayed", "late write"];
    });
    in_mode(setup, Mode::Optimistic)
}

/// The payloads differ, so that one of the messages is not done.
fn optimistic_payloads() -> Setup {
    let setup = together("an optimistic transaction of another payload").with(|world| {
        (world.messages[1].payload, world.fingerprints) = (1, true);
        world.takes = Duration::ZERO;
        world.receives = 1;
        world.faults = Faults { losses: 1, ..NONE };
        world.expect = &["executed", "mismatch"];
    });
    in_mode(setup, Mode::Optimistic)
}

/// Keys only exclude each other: each message runs, and nothing is kept of it. Copies in a batch.
fn mutex() -> Setup {
    let setup = Setup::new("a mutex", &[0, 0]).with(|world| {
        world.faults = Faults { deaths: 1, losses: 1, late: 1, errors: 1, ..NONE };
        world.expect = &["death", "late write", "failed", "executed", "takeover"];
    });
    in_mode(setup, Mode::Mutex)
}

fn mutex_together() -> Setup {
    let setup = together("a mutex of two processes").with(|world| {
        world.takes = Duration::from_millis(1_500);
        world.faults = Faults { losses: 1, late: 1, errors: 1, ..NONE };
        world.expect = &["busy", "late write", "failed", "executed", "takeover"];
    });
    in_mode(setup, Mode::Mutex)
}

tests! {
    a_transaction: hold(transaction());
    transactions_of_two_processes: hold(overtaken_transaction());
    a_transaction_at_the_deadline: hold(transaction_at_the_deadline());
    effects_are_committed: catch("CommitsEffects", COMMITTED_ONCE, transaction);
    a_commit_is_repeated: catch("RepeatsTheCommit", COMMITTED_ONCE, transaction);
    a_refused_effect_fails: catch("RefusedEffectsFail", ACKNOWLEDGED_LAST, transaction);
    an_unknown_commit_is_returned:
        catch("ReturnsWhatIsUncommitted", ACKNOWLEDGED_LAST, transaction_at_the_deadline);
    a_step: hold(step());
    steps_of_two_processes: hold(overtaken_step());
    a_step_waits_for_the_store: catch("StepsWaitForTheStore", STEPS_KEPT, step);
    an_optimistic_transaction: hold(optimistic());
    optimistic_transactions_of_two_processes: hold(optimistic_together());
    an_optimistic_transaction_at_the_deadline: hold(optimistic_at_the_deadline());
    an_optimistic_transaction_of_another_payload: hold(optimistic_payloads());
    a_completion_is_answered_from_what_it_meets:
        catch("AnswersFromWhatItMeets", COMMITTED_ONCE, optimistic_together);
    an_optimistic_commit_is_repeated: catch("RepeatsTheCommit", COMMITTED_ONCE, optimistic);
    an_optimistic_refused_effect_fails: catch("RefusedEffectsFail", ACKNOWLEDGED_LAST, optimistic);
    an_unknown_optimistic_commit_is_returned:
        catch("ReturnsWhatIsUncommitted", ACKNOWLEDGED_LAST, optimistic_at_the_deadline);
    a_mutex: hold(mutex());
    a_mutex_of_two_processes: hold(mutex_together());
    a_mutex_forgets: catch("ForgetsWhatHasEnded", ACKNOWLEDGED_LAST, mutex_together);
    copies_of_a_mutex_run: catch("CopiesOfAMutexRun", ACKNOWLEDGED_LAST, mutex);
}
