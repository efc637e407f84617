//! The configurations in which the protocol holds.
//!
//! One configuration with every fault would be too large: each has something that the others leave out.

use crate::{
    run::hold,
    setup::{Network, Setup},
    state::Faults,
    witness::Event,
};

const fn faults(crashes: u8, timeouts: u8, errors: u8) -> Faults {
    Faults { crashes, timeouts, errors }
}

#[test]
fn three_workers() {
    let setup = Setup {
        workers: 3,
        deliveries: 3,
        faults: faults(1, 1, 0),
        expect: &[
            Event::Replayed,
            Event::Busy,
            Event::TakenOverAfterCrash,
            Event::TakenAfterExpiry,
            Event::CompletionFenced,
            Event::CompletionUnderAbsent,
            Event::CompletionLost,
            Event::LostAnswerResolved,
            Event::StrayLanded,
            Event::CompletedSwept,
        ],
        ..Setup::new("three workers, one key")
    };
    hold(setup.or_large(6, faults(1, 1, 0)));
}

#[test]
fn failures_and_late_writes() {
    let setup = Setup {
        faults: faults(0, 1, 1),
        fails_permanently: true,
        expect: &[
            Event::FailureCounted,
            Event::PermanentFailure,
            Event::TakenAfterRelease,
            Event::LostAnswerResolved,
        ],
        ..Setup::new("failures and late writes")
    };
    hold(setup.or_large(5, faults(1, 1, 1)));
}

#[test]
fn failures_and_crashes() {
    let setup = Setup {
        faults: faults(1, 0, 1),
        fails_permanently: true,
        expect: &[Event::FailureCounted, Event::TakenAfterRelease, Event::TakenOverAfterCrash],
        ..Setup::new("failures and crashes")
    };
    hold(setup.or_large(5, faults(2, 0, 2)));
}

#[test]
fn undone_claims() {
    let setup = Setup {
        end: 4,
        faults: faults(1, 1, 0),
        undo: true,
        expect: &[Event::Undo, Event::TakenAfterRelease],
        ..Setup::new("undone claims")
    };
    hold(setup.or_large(5, faults(1, 1, 0)));
}

#[test]
fn renewals() {
    let setup = Setup {
        renewal: 3,
        faults: faults(1, 1, 0),
        expect: &[Event::Renewed, Event::LostAnswerResolved, Event::TakenOverAfterCrash],
        ..Setup::new("renewals")
    };
    hold(setup.or_large(6, faults(1, 1, 0)));
}

/// A renewal in the same second as its claim changes the lease and not the expiry.
#[test]
fn renewals_within_a_long_retention() {
    let setup = Setup {
        renewal: 3,
        retention: 6,
        faults: faults(0, 1, 0),
        expect: &[Event::Renewed, Event::LostAnswerResolved],
        ..Setup::new("renewals within a long retention")
    };
    hold(setup.or_large(6, faults(0, 2, 0)));
}

#[test]
fn releases_after_a_completion() {
    let setup = Setup {
        regret: true,
        faults: faults(1, 1, 0),
        expect: &[Event::CompletionFenced, Event::TakenAfterRelease],
        ..Setup::new("releases after a completion")
    };
    hold(setup.or_large(5, faults(0, 2, 0)));
}

#[test]
fn a_retention_shorter_than_the_lease() {
    let setup = Setup {
        retention: 1,
        faults: faults(1, 1, 0),
        expect: &[Event::CompletedSwept, Event::CompletionUnderAbsent],
        ..Setup::new("a retention shorter than the lease")
    };
    hold(setup.or_large(5, faults(1, 2, 0)));
}

#[test]
fn timestamps_of_every_clock() {
    let setup = Setup {
        skewed_stamps: true,
        renewal: 3,
        faults: faults(0, 1, 0),
        expect: &[Event::Renewed, Event::LostAnswerResolved],
        ..Setup::new("timestamps of every clock")
    };
    hold(setup.or_large(5, faults(1, 1, 0)));
}

#[test]
fn a_slow_network() {
    let setup = Setup {
        network: Network::Slow,
        end: 4,
        faults: faults(0, 1, 0),
        expect: &[Event::CompletionFenced, Event::LostAnswerResolved],
        ..Setup::new("a slow network")
    };
    hold(setup.or_large(5, faults(0, 1, 0)));
}

#[test]
fn slow_answers() {
    let setup = Setup {
        network: Network::SlowBothWays,
        expect: &[Event::CompletionFenced, Event::CompletionUnderAbsent, Event::Undo],
        ..Setup::new("a network that is slow both ways")
    };
    hold(setup.or_large(4, faults(1, 0, 0)));
}
