//! The worlds in which the protocol holds.
//!
//! No single world can have everything: each adds what the others leave out.

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
    hold(Setup {
        workers: 3,
        deliveries: 3,
        end: 6,
        faults: faults(2, 1, 0),
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
    });
}

#[test]
fn failures() {
    hold(Setup {
        end: 4,
        faults: faults(1, 1, 1),
        remember: true,
        expect: &[Event::FailureCounted, Event::FailureRemembered, Event::TakenAfterRelease],
        ..Setup::new("failures")
    });
}

#[test]
fn put_backs() {
    hold(Setup {
        faults: faults(1, 1, 0),
        put_back: true,
        expect: &[Event::PutBack, Event::TakenAfterRelease],
        ..Setup::new("put-backs")
    });
}

#[test]
fn renewals() {
    hold(Setup {
        end: 6,
        renewal: 3,
        faults: faults(1, 1, 0),
        expect: &[Event::Renewed, Event::LostAnswerResolved, Event::TakenOverAfterCrash],
        ..Setup::new("renewals")
    });
}

#[test]
fn renewals_of_long_retention() {
    hold(Setup {
        renewal: 3,
        retention: 6,
        faults: faults(0, 2, 0),
        expect: &[Event::Renewed, Event::LostAnswerResolved],
        ..Setup::new("renewals within a long retention")
    });
}

#[test]
fn regrets() {
    hold(Setup {
        regret: true,
        faults: faults(1, 2, 0),
        expect: &[Event::CompletionFenced, Event::TakenAfterRelease],
        ..Setup::new("releases after a completion")
    });
}

#[test]
fn short_retention() {
    hold(Setup {
        retention: 1,
        faults: faults(1, 2, 0),
        expect: &[Event::CompletedSwept, Event::CompletionUnderAbsent],
        ..Setup::new("a retention shorter than the lease")
    });
}

#[test]
fn every_clock() {
    hold(Setup {
        skewed_stamps: true,
        renewal: 3,
        faults: faults(1, 1, 0),
        expect: &[Event::Renewed, Event::TakenOverAfterCrash],
        ..Setup::new("stamps of every clock")
    });
}

#[test]
fn slow_network() {
    hold(Setup {
        network: Network::Slow,
        faults: faults(0, 1, 0),
        expect: &[Event::CompletionFenced, Event::LostAnswerResolved],
        ..Setup::new("a slow network")
    });
}

#[test]
fn slow_answers() {
    hold(Setup {
        network: Network::SlowBothWays,
        end: 4,
        faults: faults(1, 0, 0),
        expect: &[Event::TakenOverAfterCrash, Event::CompletionFenced, Event::PutBack],
        ..Setup::new("a slow network, both ways")
    });
}

#[test]
fn two_keys() {
    hold(Setup {
        keys: 2,
        faults: faults(1, 0, 0),
        expect: &[Event::TakenOverAfterCrash, Event::CompletionFenced],
        ..Setup::new("two workers, two keys")
    });
}

#[test]
fn three_workers_and_two_keys() {
    hold(Setup {
        workers: 3,
        keys: 2,
        deliveries: 2,
        end: 4,
        faults: faults(1, 0, 0),
        expect: &[Event::TakenOverAfterCrash],
        ..Setup::new("three workers, two keys")
    });
}
