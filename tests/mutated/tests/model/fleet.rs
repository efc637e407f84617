//! A table shared with functions that use Powertools, whose completions and deletions are unconditional:
//! which guarantees hold, and for each lost guarantee the steps that break it.
//!
//! A guarantee that is documented as lost is *asserted* to be lost: the checker has to find the steps.
//! So a change that restores one fails a test, and the documentation stays correct.

use crate::{
    mutants::{claims, guards},
    properties::{
        BELIEF_IS_TRUE, COUNTS_KEPT, FENCED, FENCES_OUTLIVE, FINAL, NOT_OVERWRITTEN, ONE_OWNER,
    },
    protocol::REAL,
    run::{catch, hold},
    setup::{Powertools, Setup},
    state::Faults,
    witness::Event,
};

const fn faults(crashes: u8, timeouts: u8, errors: u8) -> Faults {
    Faults { crashes, timeouts, errors }
}

/// Two workers and one function that uses Powertools.
fn fleet(name: &'static str, outlive: bool, ahead: bool) -> Setup {
    Setup {
        end: 4,
        faults: faults(0, 1, 1),
        powertools: Powertools { functions: 1, outlive, ahead },
        ..Setup::new(name)
    }
}

/// As Lambda runs them: killed at the deadline, which is the end of their lease, and with clocks
/// that are not ahead of our workers' clocks.
#[test]
fn powertools_functions_that_end_with_their_leases() {
    let setup = Setup {
        lost: &[COUNTS_KEPT],
        expect: &[
            Event::StrangerTookOver,
            Event::StrangerReplayed,
            Event::StrangerOvertaken,
            Event::Replayed,
            Event::CompletionFenced,
        ],
        ..fleet("with Powertools, killed in time", false, false)
    };
    hold(setup.or_large(5, faults(1, 1, 1)));
}

/// All other guarantees hold: no delivery is lost, no key stays locked, our writes stay fenced.
#[test]
fn powertools_functions_that_are_late_and_ahead() {
    let setup = Setup {
        lost: &[BELIEF_IS_TRUE, COUNTS_KEPT, ONE_OWNER, NOT_OVERWRITTEN],
        expect: &[
            Event::StrangerTookOver,
            Event::StrangerReplayed,
            Event::Replayed,
            Event::CompletionFenced,
            Event::CompletionUnderAbsent,
        ],
        ..fleet("with Powertools, late and ahead", true, true)
    };
    hold(setup.or_large(5, faults(1, 1, 1)));
}

/// A takeover by Powertools puts only its own attributes, and its deletion removes the record.
#[test]
fn powertools_loses_attempt_counts_and_fences() {
    let setup = || fleet("with Powertools", false, false);
    catch(REAL, setup, &[COUNTS_KEPT]);
    let setup = || Setup {
        fences: true,
        fences_outlive_records: true,
        lost: &[COUNTS_KEPT],
        faults: faults(0, 0, 2),
        ..setup()
    };
    catch(REAL, setup, &[FENCES_OUTLIVE]);
}

/// A Powertools function that outlives its lease overwrites its successor's record.
#[test]
fn a_late_powertools_function_overwrites_its_successor() {
    catch(
        REAL,
        || fleet("with late Powertools", true, false),
        &[NOT_OVERWRITTEN, BELIEF_IS_TRUE, ONE_OWNER],
    );
}

/// Powertools has no clock skew: a function whose clock is ahead takes over while our handler runs.
#[test]
fn a_powertools_function_whose_clock_is_ahead_takes_over_early() {
    catch(
        REAL,
        || fleet("with Powertools ahead", false, true),
        &[ONE_OWNER, BELIEF_IS_TRUE, NOT_OVERWRITTEN],
    );
}

/// The lost guarantees are lost by writes of Powertools only: mutants whose own writes overwrite records
/// break other properties.
#[test]
fn our_writes_do_not_overwrite_those_of_powertools() {
    let setup = || Setup {
        lost: &[BELIEF_IS_TRUE, COUNTS_KEPT, ONE_OWNER, NOT_OVERWRITTEN],
        ..fleet("with Powertools", true, true)
    };
    catch(guards::COMPLETES_OVER_ANYTHING, setup, &[FENCED]);
    catch(claims::RUNS_COMPLETED_AGAIN, setup, &[FINAL]);
}
