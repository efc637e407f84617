//! A table shared with functions that use Powertools, whose last writes are unconditional: what
//! still holds, and, for each guarantee that does not, the steps that break it.
//!
//! A guarantee that is said to be lost is *asserted* to be lost: the checker has to find the steps.
//! So a change that wins one back is noticed, and the documentation cannot promise too little.

use crate::{
    properties::{
        BELIEF_IS_TRUE, FENCED, FENCES_OUTLIVE, FINAL, HISTORY_KEPT, ONE_OWNER, SETTLED_STANDS,
    },
    protocol::Real,
    run::{catch, hold},
    setup::{Powertools, Setup},
    state::Faults,
    witness::Event,
};

const fn faults(crashes: u8, timeouts: u8, errors: u8) -> Faults {
    Faults { crashes, timeouts, errors }
}

/// Two of ours and one of theirs.
fn fleet(name: &'static str, outlive: bool, ahead: bool) -> Setup {
    Setup {
        end: 4,
        faults: faults(0, 1, 1),
        powertools: Powertools { functions: 1, outlive, ahead },
        ..Setup::new(name)
    }
}

/// As Lambda runs them: killed at the deadline, which is the end of their lease, and with clocks
/// that are not ahead of ours.
#[test]
fn while_their_functions_end_with_their_leases() {
    let setup = Setup {
        lost: &[HISTORY_KEPT],
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

/// Whatever they do, the rest holds: nothing is lost, nothing is stuck, our writes stay fenced.
#[test]
fn whatever_they_do() {
    let setup = Setup {
        lost: &[BELIEF_IS_TRUE, HISTORY_KEPT, ONE_OWNER, SETTLED_STANDS],
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

/// Their takeover is a `PutItem` of theirs alone, and their deletion leaves nothing.
#[test]
fn they_forget_what_is_known_of_a_key() {
    let setup = || fleet("with Powertools", false, false);
    catch::<Real>(setup, &[HISTORY_KEPT]);
    let setup = || Setup {
        fences: true,
        fences_outlive_records: true,
        lost: &[HISTORY_KEPT],
        faults: faults(0, 0, 2),
        ..setup()
    };
    catch::<Real>(setup, &[FENCES_OUTLIVE]);
}

/// One that has outlived its lease writes over whatever its successor has left.
#[test]
fn a_late_one_overwrites_its_successor() {
    catch::<Real>(
        || fleet("with late Powertools", true, false),
        &[SETTLED_STANDS, BELIEF_IS_TRUE, ONE_OWNER],
    );
}

/// They grant no allowance to clocks: one that is ahead takes over while we still run.
#[test]
fn one_whose_clock_is_ahead_takes_over_too_soon() {
    catch::<Real>(
        || fleet("with Powertools ahead", false, true),
        &[ONE_OWNER, BELIEF_IS_TRUE, SETTLED_STANDS],
    );
}

/// Nothing of this is our doing; and the checker would see it if it were.
#[test]
fn our_writes_never_overwrite_theirs() {
    let setup = || Setup {
        lost: &[BELIEF_IS_TRUE, HISTORY_KEPT, ONE_OWNER, SETTLED_STANDS],
        ..fleet("with Powertools", true, true)
    };
    catch::<crate::mutants::guards::CompletesOverAnything>(setup, &[FENCED]);
    catch::<crate::mutants::claims::RunsCompletedAgain>(setup, &[FINAL]);
}
