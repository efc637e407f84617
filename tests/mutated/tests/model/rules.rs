//! Configurations that show mutants of their own.

use crate::{
    mutants::{answers, claims, fences, settlements},
    properties::{
        ACKNOWLEDGED_LAST, COUNTS_KEPT, DROPPED_COUNTS, FAILURES_ARE_REAL, FENCES_OUTLIVE,
        FENCES_RISE, NOTHING_LOST, ONE_AT_A_TIME, OWN_ANSWER, WAITING_ENDS,
    },
    protocol::REAL,
    run::{catch, hold},
    setup::Setup,
    state::Faults,
    witness::Event,
};

const fn faults(crashes: u8, timeouts: u8, errors: u8) -> Faults {
    Faults { crashes, timeouts, errors }
}

/// Handlers are stopped with their lease, so that a completion may overtake a renewal.
fn stopping() -> Setup {
    Setup {
        renewal: 2,
        stops: true,
        faults: faults(0, 1, 0),
        expect: &[
            Event::Renewed,
            Event::StoppedWithItsLease,
            Event::LostAnswerResolved,
            Event::StrayLanded,
        ],
        ..Setup::new("stopped with the lease")
    }
}

#[test]
fn stopped_with_the_lease() {
    hold(stopping().or_large(6, faults(1, 1, 0)));
    catch(claims::NO_CLOCK_SKEW, stopping, &[ONE_AT_A_TIME]);
}

/// A renewal that is sent in time and arrives after a takeover is refused. Workers here do not stop at
/// the end of their lease, so the refusal stops the handler.
#[test]
fn a_refused_renewal() {
    let expect = &[Event::RenewalRefused];
    hold(Setup { expect, renewal: 3, ..Setup::new("refused renewals") });
}

fn waiting() -> Setup {
    Setup {
        waits: true,
        faults: faults(1, 1, 0),
        expect: &[
            Event::WaitedForResult,
            Event::TookOverAfterWaiting,
            Event::TakenOverAfterCrash,
            Event::CompletionFenced,
        ],
        ..Setup::new("waiting for a busy key")
    }
}

#[test]
fn waiting_for_a_busy_key() {
    hold(waiting().or_large(5, faults(1, 1, 1)));
    catch(answers::ACKNOWLEDGES_BUSY, waiting, &[ACKNOWLEDGED_LAST, NOTHING_LOST]);
    catch(answers::PROMISES_TOO_SOON, waiting, &[WAITING_ENDS]);
}

fn payloads() -> Setup {
    Setup {
        others: 1,
        fingerprints: true,
        end: 4,
        faults: faults(0, 0, 1),
        expect: &[Event::Mismatched, Event::CompletionFenced, Event::FailureCounted],
        ..Setup::new("two payloads under one key")
    }
}

#[test]
fn two_payloads_under_one_key() {
    hold(payloads().or_large(5, faults(0, 1, 1)));
    catch(answers::ANSWERS_ANY_PAYLOAD, payloads, &[OWN_ANSWER]);
    catch(answers::TAKES_ANY_RESULT, payloads, &[OWN_ANSWER]);
}

/// Two applications whose operations have one name, so that their keys are the same.
fn namesakes() -> Setup {
    Setup {
        others: 1,
        applications: true,
        faults: faults(1, 1, 0),
        expect: &[
            Event::MetForeign,
            Event::Replayed,
            Event::TakenOverAfterCrash,
            Event::TakenAfterExpiry,
            Event::CompletionFenced,
        ],
        ..Setup::new("two applications with one name")
    }
}

#[test]
fn two_applications_with_one_name() {
    hold(namesakes());
    catch(answers::ANSWERS_ANY_APPLICATION, namesakes, &[OWN_ANSWER]);
    catch(answers::TAKES_ANY_APPLICATIONS_RESULT, namesakes, &[OWN_ANSWER]);
}

/// An owner that disappears is no failure.
#[test]
fn lost_attempts_are_no_failures() {
    catch(
        answers::BLAMES_LOST_ATTEMPTS,
        || Setup { faults: faults(1, 0, 1), ..Setup::new("a mutant") },
        &[FAILURES_ARE_REAL],
    );
}

fn dropped() -> Setup {
    Setup {
        drops: true,
        faults: faults(0, 1, 0),
        expect: &[Event::Dropped, Event::StopSaid, Event::TakenAfterRelease],
        ..Setup::new("dropped at the deadline, tried again")
    }
}

#[test]
fn dropped_and_tried_again() {
    hold(dropped().or_large(6, faults(1, 1, 0)));
    catch(settlements::RELEASES_WHAT_WAS_DROPPED, dropped, &[DROPPED_COUNTS]);
    catch(settlements::SUSPECTS_THE_STOPPED, dropped, &[COUNTS_KEPT]);
}

fn fenced() -> Setup {
    Setup {
        fences: true,
        fences_outlive_records: true,
        skewed_stamps: true,
        undo: true,
        end: 4,
        faults: faults(0, 0, 1),
        expect: &[Event::Undo, Event::TakenAfterRelease, Event::FailureCounted],
        ..Setup::new("fences, undone claims and removed records")
    }
}

#[test]
fn fences_of_handlers() {
    hold(fenced().or_large(5, faults(1, 0, 1)));
    catch(fences::FENCES_BY_THE_CLOCK, fenced, &[FENCES_RISE]);
    catch(fences::FENCES_FROM_ONE, fenced, &[FENCES_RISE]);
    catch(fences::RELEASES_THE_FENCE, fenced, &[FENCES_RISE]);
}

/// The limit of fences: a removed record takes its fence with it. A claim that was in flight for longer
/// than the record existed can then have a fence from before.
#[test]
fn a_fence_does_not_outlive_a_short_retention() {
    let setup = || Setup {
        fences: true,
        fences_outlive_records: true,
        retention: 1,
        faults: faults(0, 1, 0),
        ..Setup::new("a retention shorter than a claim takes")
    };
    catch(REAL, setup, &[FENCES_OUTLIVE]);
}
