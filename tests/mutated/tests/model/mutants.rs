//! Leaves out one rule at a time: the property that concerns the rule has to break.

use std::time::Duration;

use crate::{
    core::policy::Lease,
    properties::*,
    recovery,
    run::{catch, lose},
    setup::Setup,
    world::Faults,
    worlds::{self, NONE},
};

/// One of two processes loses its lease while its answers are late, and has another payload than its successor.
fn two_payloads() -> Setup {
    worlds::late_answers().with(|world| {
        (world.messages[1].payload, world.fingerprints) = (1, true);
        world.faults.errors = 1;
    })
}

fn short_applications() -> Setup {
    let world = worlds::late_answers().with(|world| {
        (world.messages[1].payload, world.applications) = (1, true);
        world.takes = Duration::from_millis(900);
        world.faults = Faults { delays: 3, errors: 1, ..NONE };
    });
    brief(world).policy(|policy| policy.retention = Duration::from_secs(1))
}

/// With a lease of one second.
fn brief(world: Setup) -> Setup {
    world.policy(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(1) })
}

/// Two failures within a second.
fn failures() -> Setup {
    worlds::three_processes().with(|world| world.faults = Faults { losses: 1, errors: 2, ..NONE })
}

fn swept() -> Setup {
    worlds::swept("a short retention")
}

/// Renewals whose answers are lost, and which arrive late.
fn late_renewals() -> Setup {
    worlds::renewed().with(|world| world.faults = Faults { losses: 2, late: 1, ..NONE })
}

tests! {
    a_claim_is_known_by_its_token: catch("KnowsItsClaim", OWN_WORK_KNOWN, worlds::renewed);
    a_takeover_waits_for_the_skew: catch("WaitsForTheSkew", ONE_OWNER, worlds::clocks);
    a_believed_lease_is_not_taken_over: catch("WaitsForTheSkew", BELIEF_IS_TRUE, worlds::past_a_lease);
    a_completion_answers_until_the_skew_has_passed: catch("WaitsForTheSkew", FINAL, || {
        swept().with(|world| world.faults = Faults { steps: 1, ..NONE })
    });
    the_owner_has_the_last_instant: catch("OwnsTheLastInstant", ONE_OWNER, || {
        swept().with(|world| world.faults = Faults { losses: 2, steps: 1, ..NONE })
    });
    a_late_answer_starts_no_handler: catch("WaitsForTheSkew", STARTS_AS_OWNER, || {
        brief(worlds::late_answers().with(|world| {
            (world.sweeps, world.takes) = (true, Duration::ZERO);
            // The successor's claim breaks it before the handler starts.
            world.lost = &[ONE_OWNER];
            world.faults = Faults { delays: 2, steps: 1, ..NONE };
        }))
    });
    a_failure_is_counted: catch("FailuresAreCounted", COUNTS_KEPT, worlds::alone);
    the_completion_of_another_is_not_the_own: catch("KnowsWhoCompleted", OWN_ANSWER, two_payloads);
    a_busy_key_is_not_done: catch("BusyIsNotDone", ACKNOWLEDGED_LAST, worlds::two_processes);
    a_wait_ends_when_it_is_said_to: catch("PromisesTheEnd", WAITING_ENDS, worlds::two_processes);
    failed_attempts_are_carried_on: catch("KeepsFailedAttempts", COUNTS_KEPT, worlds::alone);
    lost_attempts_are_counted: catch("CountsLostAttempts", COUNTS_KEPT, worlds::alone);
    lost_attempts_are_no_failures: catch("LossesAreNoFailures", FAILURES_ARE_REAL, worlds::alone);
    a_completed_key_is_not_claimed: catch("CompletedIsNotClaimed", FINAL, worlds::two_processes);
    another_payload_is_not_answered: catch("AnswersItsPayload", OWN_ANSWER, worlds::payloads);
    the_result_of_another_payload_is_not_taken: catch("TakesItsPayloadsResult", OWN_ANSWER, two_payloads);
    another_application_is_not_answered: catch("AnswersItsApplication", OWN_ANSWER, worlds::namesakes);
    the_result_of_another_application_is_not_taken:
        catch("TakesItsApplicationsResult", OWN_ANSWER, short_applications);
    a_claim_expires_after_its_lease: catch("OutlivesItsLease", EXPIRES_AFTER_LEASE, swept);
    a_claim_expires_after_the_skew: catch("ExpiresAfterTheSkew", SWEEP_SPARES_HOLDERS, || brief(worlds::delayed()));
    a_key_is_not_locked_until_its_record_expires: catch("HasALease", RECOVERY, worlds::alone);
    a_fence_is_above_that_of_the_record: catch("FencesFollowTheRecord", FENCES_RISE, || {
        worlds::two_processes().with(|world| world.faults = Faults { errors: 1, ..NONE })
    });
    a_fence_is_above_the_clock: catch("FencesFollowTheClock", FENCES_RISE, worlds::alone);
    a_release_keeps_its_fence: catch("ReleaseKeepsTheFence", FENCES_RISE, worlds::alone);
    /// The limit of fences: a removed record takes its fence with it. A claim that was in flight for longer than the record
    /// existed can then have a fence from before.
    a_fence_does_not_outlive_a_short_retention: lose(&[FENCES_OUTLIVE], || {
        worlds::delayed().with(|world| (world.takes, world.lost) = (Duration::ZERO, &[]))
    });
    a_late_renewal_shortens_no_other: catch("RenewalNamesTheLease", BELIEF_IS_TRUE, late_renewals);
    a_failure_keeps_the_record: catch("FailureKeepsTheRecord", COUNTS_KEPT, worlds::alone);
    an_undo_keeps_the_record: catch("UndoKeepsTheRecord", COUNTS_KEPT, worlds::alone);
    a_stop_keeps_the_lease: catch("StopKeepsTheLease", STOPPED_COUNTS, || {
        worlds::timed_out().with(|world| world.visibility = Duration::from_secs(6))
    });
    a_stop_ends_the_losses: catch("StopEndsTheLosses", COUNTS_KEPT, worlds::timed_out);
    a_renewal_moves_the_expiry: catch("RenewalMovesTheExpiry", EXPIRES_AFTER_LEASE, swept);
    a_completion_that_finds_nothing_is_not_done:
        catch("MissingIsNotDone", ACKNOWLEDGED_LAST, worlds::delayed);
    a_settlement_is_known_by_its_token: catch("KnowsItsSettlement", OWN_WORK_KNOWN, worlds::alone);
    a_renewal_is_no_successor: catch("KnowsItsRecord", NOT_MISLED, worlds::renewed);
    a_successor_that_works_is_not_done: catch("SuccessorIsNotDone", ACKNOWLEDGED_LAST, worlds::late_answers);
    a_guard_names_the_lease: catch("GuardsNameTheLease", BELIEF_IS_TRUE, late_renewals);
    a_guard_names_the_times: catch("GuardsNameTimes", BELIEF_IS_TRUE, late_renewals);
    a_guard_names_the_last_owner: catch("GuardsNameTheLastOwner", COUNTS_KEPT, failures);
    only_the_owner_settles: catch("OwnersSettle", FENCED, worlds::late_answers);
    a_settled_record_is_not_settled_again: catch("SettlesWhatIsInProgress", FINAL, worlds::alone);
    records_of_a_key_go_one_by_one: catch("OneOfAKeyGoes", CLAIMED_ONCE, worlds::payloads);
    settlements_are_sent_until_the_response_is_due:
        catch("SettlesUntilTheReply", RECORDED, worlds::permanent_timeout);
    a_renewal_ends_with_its_lease: catch("RenewsWithinTheLease", RENEWED_IN_TIME, worlds::renewed);
    undoing_keeps_attempt_counts: catch("UndoKeepsHistory", COUNTS_KEPT, worlds::alone);
    an_unanswered_completion_is_not_shared: catch("LearnsOnlyAnsweredWrites", ACKNOWLEDGED_LAST, || {
        worlds::one_process().with(|world| {
            world.faults = Faults { losses: 1, delays: 3, ..NONE };
        })
    });
    quarantine_stops_claims: catch("QuarantineStopsClaims", ALONE, worlds::beside_a_busy_key);
    quarantine_waits_for_the_others: catch("QuarantineWaitsForTheOthers", ALONE, worlds::stream);
    an_unprotected_result_is_not_shared: catch("UnprotectedIsNotShared", ACKNOWLEDGED_LAST, worlds::unprotected);
    a_handler_is_stopped_at_the_end_of_its_lease: catch("StopsWithoutLease", ONE_HANDLER, || {
        // All tries of a renewal.
        let faults = Faults { refusals: 4, ..NONE };
        worlds::outlives_its_lease().with(|world| world.faults = faults)
    });
    a_failure_stops_the_group: catch("StopsTheGroup", IN_ORDER, worlds::group);
    only_records_with_the_same_payload_are_copies: catch("CopiesNeedEqualContent", OWN_ANSWER, worlds::payloads);
    an_unstarted_claim_is_undone: catch("UndoesUnstartedClaims", UNDONE, || {
        worlds::claimed_ahead().with(|world| world.takes = Duration::from_secs(3))
    });
    a_stopped_handler_keeps_its_lease: catch("StoppedKeepsItsLease", STOPPED_COUNTS, || {
        worlds::timed_out().with(|world| world.visibility = Duration::from_secs(6))
    });
    the_response_is_in_time: catch("WakesForTheEnd", IN_TIME, || {
        worlds::permanent_timeout().with(|world| world.takes = Duration::from_secs(10))
    });
    /// Without a claim, no lease ends that would wake the machine.
    a_handler_that_hangs_is_stopped: catch("WakesForTheEnd", NOTHING_LOST, || {
        worlds::unprotected().with(|world| world.faults.hangs = 1)
    });
    the_end_of_a_lease_wakes_the_machine: catch("WakesForLeases", ONE_HANDLER, worlds::outlives_its_lease);
    a_waiting_machine_wakes: catch("WakesWaitingRecords", WAKES, worlds::outlives_its_lease);
    lost_attempts_lead_to_quarantine: catch("QuarantinesAfterLosses", HARM, worlds::poison);
    records_that_were_lost_once_run_together:
        catch("LostOnceRunTogether", RECOVERY, || recovery::near_a_death(4));
    suspects_that_were_lost_twice_run_alone: catch("LostTwiceRunAlone", ALONE, || {
        recovery::near_two_deaths("two deaths among two slow records", 2, 2)
    });
    suspects_and_others_take_turns: catch("SuspectsTakeTurns", RECOVERY, recovery::beside_fresh_ones);
    a_stop_is_said: catch("RecordsThatItStopped", RECORDED, || recovery::stopped(3));
}
