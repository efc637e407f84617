//! Leaves out one rule at a time: the property that concerns the rule has to break.

use std::time::Duration;

use lambda_idempotency_core::policy::OnConflict;

use crate::{properties::*, recovery, rules::Rule, run::catch, world::Faults, worlds};

tests! {
    a_follower_is_woken_once: catch(Rule::WakesAFollowerOnce, CLAIMED_ONCE, || {
        // It gives up waiting at the instant at which its leader ends, which leaves it nothing to be answered from.
        let wait = OnConflict::Wait { up_to: Duration::from_secs(1) };
        let faults = Faults { errors: 1, ..worlds::NONE };
        let outlived = worlds::outlived().with(|world| world.faults = faults);
        outlived.policy(|policy| policy.on_conflict = wait)
    });
    settlements_are_sent_until_the_response_is_due:
        catch(Rule::SettlesUntilTheReply, RECORDED, worlds::permanent_timeout);
    a_renewal_ends_with_its_lease: catch(Rule::RenewsWithinTheLease, RENEWED_IN_TIME, worlds::renewed);
    undoing_keeps_attempt_counts: catch(Rule::UndoKeepsHistory, COUNTS_KEPT, worlds::alone);
    an_unanswered_completion_is_not_shared: catch(Rule::LearnsOnlyAnsweredWrites, ACKNOWLEDGED_LAST, || {
        worlds::one_process().with(|world| {
            world.faults = Faults { losses: 1, delays: 3, ..worlds::NONE };
        })
    });
    quarantine_stops_claims: catch(Rule::QuarantineStopsClaims, ALONE, worlds::beside_a_busy_key);
    quarantine_waits_for_the_others: catch(Rule::QuarantineWaitsForTheOthers, ALONE, worlds::whole_batch);
    an_unprotected_result_is_not_shared: catch(Rule::UnprotectedIsNotShared, ACKNOWLEDGED_LAST, worlds::unprotected);
    a_handler_is_stopped_at_the_end_of_its_lease: catch(Rule::StopsWithoutLease, ONE_HANDLER, || {
        // All tries of a renewal.
        let faults = Faults { refusals: 4, ..worlds::NONE };
        worlds::outlives_its_lease().with(|world| world.faults = faults)
    });
    a_failure_stops_the_group: catch(Rule::StopsTheGroup, IN_ORDER, worlds::group);
    a_failure_ends_the_batch_behind_it: catch(Rule::ClosesBehindAFailure, IN_ORDER, worlds::whole_batch);
    only_records_with_the_same_payload_are_copies: catch(Rule::CopiesNeedEqualContent, OWN_ANSWER, worlds::payloads);
    an_unstarted_claim_is_undone: catch(Rule::UndoesUnstartedClaims, UNDONE, || {
        worlds::claimed_ahead().with(|world| world.takes = Duration::from_secs(3))
    });
    a_stopped_handler_keeps_its_lease: catch(Rule::StoppedKeepsItsLease, STOPPED_COUNTS, || {
        worlds::timed_out().with(|world| world.visibility = Duration::from_secs(6))
    });
    the_response_is_in_time: catch(Rule::WakesForTheEnd, IN_TIME, || {
        worlds::permanent_timeout().with(|world| world.takes = Duration::from_secs(10))
    });
    /// Without a claim, no lease ends that would wake the machine.
    a_handler_that_hangs_is_stopped: catch(Rule::WakesForTheEnd, NOTHING_LOST, || {
        worlds::unprotected().with(|world| world.faults.hangs = 1)
    });
    the_end_of_a_lease_wakes_the_machine: catch(Rule::WakesForLeases, ONE_HANDLER, worlds::outlives_its_lease);
    a_waiting_machine_wakes: catch(Rule::WakesWaitingRecords, WAKES, worlds::outlives_its_lease);
    lost_attempts_lead_to_quarantine: catch(Rule::QuarantinesAfterLosses, HARM, worlds::poison);
    records_that_were_lost_once_run_together_after_a_receive_without_an_attempt:
        catch(Rule::LostOnceRunTogether, RECOVERY, || recovery::near_a_death(4));
    suspicion_splits: catch(Rule::SuspicionSplits, ALONE, || recovery::near_a_death(3));
    suspects_and_others_take_turns: catch(Rule::SuspectsTakeTurns, RECOVERY, recovery::beside_fresh_ones);
    a_stop_is_said: catch(Rule::RecordsThatItStopped, RECORDED, || recovery::stopped(3));
}
