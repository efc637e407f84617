//! The configurations of the engine's own rules, and the mutants that leave out one of them.

use crate::{
    mutants::{answers, engine, fences, settlements},
    properties::{
        ACKNOWLEDGED_LAST, BELIEF_IS_TRUE, CEILING, COUNTS_KEPT, DROPPED_COUNTS, EXHAUSTED_STAYS,
        FAILURES_ARE_REAL, FENCES_OUTLIVE, FENCES_RISE, HARMED_ONCE, IN_ORDER, NOTHING_LOST,
        ONE_AT_A_TIME, ONE_OWNER, OWN_ANSWER, WAITING_ENDS,
    },
    protocol::Real,
    run::{catch, hold},
    setup::{Deadline, Setup},
    state::Faults,
    witness::Event,
};

const fn faults(crashes: u8, timeouts: u8, errors: u8) -> Faults {
    Faults { crashes, timeouts, errors }
}

fn ceiling() -> Setup {
    Setup {
        renewal: 2,
        ceiling: 4,
        stops: true,
        faults: faults(0, 1, 0),
        expect: &[
            Event::Renewed,
            Event::StoppedWithItsLease,
            Event::LostAnswerResolved,
            Event::StrayLanded,
        ],
        ..Setup::new("renewals up to a ceiling")
    }
}

#[test]
fn renewed_leases() {
    hold(ceiling().or_large(6, faults(1, 1, 0)));
    catch::<engine::RunsAfterItsLease>(ceiling, &[ONE_AT_A_TIME]);
    catch::<engine::TrustsUnansweredRenewals>(ceiling, &[BELIEF_IS_TRUE, ONE_OWNER, ONE_AT_A_TIME]);
    catch::<engine::RenewsForever>(ceiling, &[CEILING]);
}

/// A renewal that is sent in time and arrives after a takeover is refused. Workers here do not stop at
/// the end of their lease, so the refusal stops the handler.
#[test]
fn a_refused_renewal() {
    let setup = || Setup { renewal: 3, ..Setup::new("refused renewals") };
    let expect = &[Event::RenewalRefused];
    hold(Setup { expect, ..setup() });
    catch::<engine::IgnoresRefusedRenewals>(setup, &[BELIEF_IS_TRUE, ONE_OWNER]);
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
    catch::<engine::AcknowledgesBusy>(waiting, &[ACKNOWLEDGED_LAST, NOTHING_LOST]);
    catch::<answers::PromisesTooSoon>(waiting, &[WAITING_ENDS]);
}

fn coalescing() -> Setup {
    Setup {
        others: 1,
        pairs: true,
        fingerprints: true,
        end: 4,
        faults: faults(0, 0, 1),
        expect: &[
            Event::Coalesced,
            Event::LaterInBatch,
            Event::Mismatched,
            Event::CompletionFenced,
            Event::FailureCounted,
        ],
        ..Setup::new("coalescing, two payloads under one key")
    }
}

#[test]
fn copies_and_other_payloads_in_a_batch() {
    hold(coalescing().or_large(5, faults(0, 1, 1)));
    catch::<engine::CoalescesByKeyAlone>(coalescing, &[OWN_ANSWER]);
    catch::<engine::CoalescesAtTheStart>(coalescing, &[ACKNOWLEDGED_LAST]);
    catch::<answers::AnswersAnyPayload>(coalescing, &[OWN_ANSWER]);
    catch::<answers::TakesAnyResult>(coalescing, &[OWN_ANSWER]);
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
    catch::<answers::AnswersAnyApplication>(namesakes, &[OWN_ANSWER]);
    catch::<answers::TakesAnyApplicationsResult>(namesakes, &[OWN_ANSWER]);
}

fn ordered() -> Setup {
    Setup {
        keys: 2,
        ordered: true,
        end: 4,
        faults: faults(1, 0, 1),
        expect: &[Event::GroupStopped, Event::Replayed, Event::CompletionFenced],
        ..Setup::new("an ordered group of two keys")
    }
}

#[test]
fn an_ordered_group() {
    hold(ordered().or_large(5, faults(1, 0, 2)));
    catch::<engine::ContinuesAfterFailure>(ordered, &[IN_ORDER]);
    catch::<engine::ReportsPastTheFailure>(ordered, &[NOTHING_LOST]);
    catch::<engine::AcknowledgesBusy>(ordered, &[IN_ORDER]);
}

/// The first key's handler kills its worker. The worker's other handler dies with it, once: after that
/// both keys are quarantined, and neither is claimed beside other work.
fn poisoned() -> Setup {
    Setup {
        keys: 2,
        poison: true,
        end: 4,
        retention: 6,
        faults: faults(2, 0, 0),
        expect: &[Event::Harmed, Event::QuarantineDelayed, Event::TakenOverAfterCrash],
        ..Setup::new("a key that kills its worker")
    }
}

#[test]
fn a_key_that_kills_its_worker() {
    hold(poisoned().or_large(5, faults(2, 0, 0)));
    catch::<engine::RunsQuarantinedAmongOthers>(poisoned, &[HARMED_ONCE]);
}

fn exhausting() -> Setup {
    Setup {
        max_failed_attempts: 2,
        end: 4,
        faults: faults(1, 0, 2),
        expect: &[Event::FailureCounted, Event::PermanentFailure, Event::TakenOverAfterCrash],
        ..Setup::new("permanent after two failed attempts")
    }
}

#[test]
fn permanent_after_the_maximum_of_failed_attempts() {
    hold(exhausting().or_large(5, faults(1, 1, 2)));
    catch::<engine::NeverFailsPermanently>(exhausting, &[EXHAUSTED_STAYS]);
    catch::<answers::BlamesLostAttempts>(exhausting, &[FAILURES_ARE_REAL]);
}

fn dropped(deadline: Deadline) -> Setup {
    Setup {
        deadline,
        faults: faults(0, 1, 0),
        expect: &[Event::Dropped, Event::StopSaid, Event::TakenAfterRelease],
        ..Setup::new("dropped at the deadline, tried again")
    }
}

#[test]
fn dropped_and_tried_again() {
    let retried = || dropped(Deadline::Return);
    hold(retried().or_large(6, faults(1, 1, 0)));
    catch::<engine::ReleasesWhatItDrops>(retried, &[DROPPED_COUNTS]);
    catch::<settlements::SuspectsTheStopped>(retried, &[COUNTS_KEPT]);
}

#[test]
fn dropped_and_failed_permanently() {
    let permanent = || Setup {
        expect: &[Event::Dropped, Event::PermanentFailure],
        name: "dropped at the deadline, permanent",
        ..dropped(Deadline::FailPermanently)
    };
    hold(permanent().or_large(6, faults(1, 1, 0)));
    catch::<engine::ReleasesWhatItDrops>(permanent, &[DROPPED_COUNTS]);
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
    catch::<fences::FencesByTheClock>(fenced, &[FENCES_RISE]);
    catch::<fences::FencesFromOne>(fenced, &[FENCES_RISE]);
    catch::<fences::ReleasesTheFence>(fenced, &[FENCES_RISE]);
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
    catch::<Real>(setup, &[FENCES_OUTLIVE]);
}
