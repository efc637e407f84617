//! Mutants of a store: each has one bug, and the scenarios listed beside it must fail.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

mod store;

use std::{collections::BTreeSet, panic::AssertUnwindSafe};

use futures_util::FutureExt;
use lambda_idempotency_testkit::conformance::SCENARIOS;

use store::Mutant;

/// The one slow scenario, which is run only with the bugs that list it.
const SLOW: &str = "many_large_records_in_one_read";

macro_rules! mutants {
    ($($bug:ident: $($scenario:ident)+;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Bug {
            None,
            $($bug),+
        }

        const BUGS: &[(Bug, &[&str])] = &[$((Bug::$bug, &[$(stringify!($scenario)),+])),+];
    };
}

mutants! {
    AbsentAlwaysHolds: second_absent_write_finds_the_first sixteen_claimants_have_one_winner
        delete_under_absent_deletes_nothing absent_finds_a_record_of_any_status
        retried_claim_meets_its_own_token duplicate_of_a_claim_cannot_reopen_a_completed_key
        completion_that_finds_a_successors_is_answered_with_it;
    AbsentIgnoresExpired: expired_record_is_found_under_absent;
    AbsentIgnoresLapsed: lapsed_record_is_found_under_absent absent_finds_a_record_of_any_status;
    AbsentIgnoresSettled: absent_finds_a_record_of_any_status a_key_lives_through_the_protocol;
    DeletedForGood: deleted_key_is_absent_again
        completion_that_finds_nothing_is_written_under_absent;
    OwnedByIgnoresOwner: late_completion_cannot_overwrite_the_successor
        late_failure_cannot_release_the_successor late_undo_cannot_delete_the_successor
        rejected_duplicate_does_not_remove_the_owners_lock owned_by_needs_the_very_token
        duplicate_of_a_release_cannot_free_the_next_owner token_of_one_key_opens_no_other
        late_forgetting_cannot_free_the_successors_key;
    OwnedByIgnoresStatus: completed_is_final_for_its_own_owner owned_by_needs_a_record_in_progress
        permanent_failure_is_final_for_its_own_owner batch_of_settlements;
    OwnedByComparesTheEnd: owned_by_needs_the_very_token;
    OwnedByTakesLastOwner: owned_by_misses_a_released_record retried_release_is_done;
    OwnedByChecksTheLease: owned_by_holds_after_the_lease;
    OwnedByCreates: owned_by_on_nothing_finds_nothing mixed_guards_have_their_own_verdicts;
    UnchangedCreates: unchanged_on_nothing_finds_nothing what_is_gone_at_its_takeover_is_claimed_anew;
    UnchangedIgnoresStatus: unchanged_names_the_status;
    UnchangedIgnoresAll: stale_takeover_cannot_reopen_a_completed_key unchanged_misses_its_own_successor
        renewing_against_takeovers_has_one_winner longer_renewal_after_a_lost_one_is_written;
    UnchangedIgnoresOwner: unchanged_names_the_owner unchanged_tells_an_owner_from_none;
    UnchangedIgnoresLastOwner: unchanged_names_the_last_owner unchanged_tells_a_last_owner_from_none
        two_releases_within_a_second_are_told_apart delete_under_unchanged;
    UnchangedIgnoresLease: unchanged_names_the_lease_to_the_millisecond unchanged_tells_a_lease_from_none
        renewal_is_guarded_by_its_lease;
    UnchangedIgnoresExpiry: unchanged_names_the_expiry;
    UnchangedTakesNoneForAny: unchanged_tells_an_owner_from_none unchanged_tells_a_last_owner_from_none
        unchanged_tells_a_lease_from_none;
    UnchangedNeverMatchesNone: unchanged_holds_with_every_optional_field_absent
        unchanged_tells_an_owner_from_none unchanged_tells_a_lease_from_none
        record_without_a_lease_is_locked_until_it_expires claims_and_takeovers_in_one_batch;
    NeverDeletes: delete_under_owned_by delete_under_unchanged deleted_key_is_absent_again
        forgotten_claim_leaves_nothing;
    DeletesWhateverIsThere: delete_under_owned_by late_undo_cannot_delete_the_successor
        rejected_duplicate_does_not_remove_the_owners_lock late_forgetting_cannot_free_the_successors_key
        late_freeing_cannot_delete_the_successors_completion;
    DeleteOfMissingIsFound: delete_of_what_is_gone_is_written retried_delete_is_written;
    Merges: takeover_replaces_every_field settling_replaces_every_field;
    KeepsOldError: takeover_replaces_every_field settling_replaces_every_field;
    ForgetsOwner: every_field_present each_optional_field_by_itself
        owners_of_every_shape two_keys_at_once_are_settled_apart successor_settles_undisturbed
        claim_in_doubt_is_found_out_by_reading;
    ForgetsLastOwner: every_field_present each_optional_field_by_itself
        retried_undo_keeps_the_history;
    ForgetsFailedAttempts: counters retried_undo_keeps_the_history;
    ForgetsFence: counters each_owner_has_a_higher_fence;
    FenceIn32Bits: counters every_field_present each_owner_has_a_higher_fence;
    KeepsOldFence: each_owner_has_a_higher_fence takeover_replaces_every_field;
    ForgetsLostAttempts: counters claims_and_takeovers_in_one_batch lapsed_record_is_taken_over;
    ForgetsConsecutiveLosses: counters lapsed_record_is_taken_over;
    ExpiryKeptFromTheClaim: completion_restarts_the_retention;
    ExpiryAMinuteEarly: at_its_last_instant_it_still_counts instants_keep_their_precision;
    ForgetsLease: each_optional_field_by_itself instants_keep_their_precision;
    ForgetsFingerprint: each_optional_field_by_itself unicode_text;
    CompletionForgetsFingerprint: fingerprint_outlives_the_completion every_field_present;
    CompletionForgetsLease: marks_and_renewals_change_nothing_else every_field_present;
    FailureForgetsResult: permanent_failure_is_the_answer_until_it_expires every_field_present;
    ForgetsResult: each_optional_field_by_itself results_byte_for_byte large_result
        expired_record_is_found_under_absent a_key_lives_through_the_protocol
        late_failure_is_answered_with_the_successors_completion;
    ForgetsError: each_optional_field_by_itself unicode_text retried_permanent_failure_is_done;
    ForgetsApplication: each_optional_field_by_itself
        another_application_is_refused_and_changes_nothing;
    ForgetsProvenance: each_optional_field_by_itself every_field_present provenance_of_every_shape;
    KeepsOldProvenance: takeover_replaces_every_field settling_replaces_every_field
        settlements_have_the_provenance_that_they_name;
    ReplacingForgetsProvenance: settlements_have_the_provenance_that_they_name;
    ForgetsSteps: each_optional_field_by_itself every_field_present;
    KeepsOldSteps: takeover_replaces_every_field settling_replaces_every_field;
    ForgetsOutbox: each_optional_field_by_itself every_field_present;
    KeepsOldOutbox: takeover_replaces_every_field;
    ForgetsPayload: each_optional_field_by_itself every_field_present;
    KeepsOldPayload: takeover_replaces_every_field settling_replaces_every_field;
    MarkForgetsResult: marks_and_renewals_change_nothing_else;
    RenewalForgetsPayload: marks_and_renewals_change_nothing_else;
    ProvenanceInSeconds: provenance_of_every_shape;
    CountsInAByte: counters;
    LeaseInSeconds: instants_keep_their_precision reads_see_the_latest_write;
    ResultReformatted: results_byte_for_byte;
    ResultCutAt64K: large_result many_large_records_in_one_read;
    TextInAscii: unicode_text large_result;
    EmptyForAbsent: every_optional_field_absent absent_key_is_written_and_read_back;
    TooLargeIsCut: one_bad_member_harms_only_itself result_that_is_too_large_leaves_the_claim;
    TooLargeIsTransient: one_bad_member_harms_only_itself
        result_that_is_too_large_leaves_the_claim;
    TooLargeIsInDoubt: one_bad_member_harms_only_itself
        result_that_is_too_large_leaves_the_claim;
    TooLargeDeletes: result_that_is_too_large_leaves_the_claim;
    KeysFoldCase: similar_keys_do_not_meet;
    KeysTrimmed: similar_keys_do_not_meet;
    KeysInAscii: similar_keys_do_not_meet;
    KeysCutAt255: long_keys_are_kept_whole;
    KeysArePrefixes: different_keys_at_once_all_win two_keys_at_once_are_settled_apart
        batch_of_60_is_written;
    LateWritesAreDenied: past_the_deadline_it_tells_the_truth;
    LateWritesAreConfirmed: past_the_deadline_it_tells_the_truth;
    LooksThenWrites: renewing_against_takeovers_has_one_winner
        every_failure_under_contention_is_counted sixteen_claimants_have_one_winner fifty_claimants_have_one_winner
        takeovers_of_a_lapsed_record_have_one_winner claims_through_the_protocol_have_one_winner
        settling_against_takeovers_has_one_winner overlapping_batches_have_one_winner_a_key;
    RepeatIsWritten: retried_claim_meets_its_own_token retried_takeover_meets_its_own_token
        retried_completion_is_done retried_renewal_is_done batch_of_settlements;
    AppliesWhatItRefuses: second_absent_write_finds_the_first renewal_is_guarded_by_its_lease
        late_completion_cannot_overwrite_the_successor late_renewal_cannot_take_the_key_back
        unchanged_misses_its_own_successor duplicate_of_a_takeover_cannot_reopen_the_key;
    RefusalShowsNothing: second_absent_write_finds_the_first
        sixteen_claimants_have_one_winner batch_of_settlements;
    RefusalShowsTheNew: second_absent_write_finds_the_first sixteen_claimants_have_one_winner
        unchanged_on_nothing_finds_nothing;
    RefusalIsWritten: owned_by_on_nothing_finds_nothing late_renewal_cannot_take_the_key_back
        unchanged_names_the_status;
    RefusalIsAnError: second_absent_write_finds_the_first unchanged_names_the_owner;
    OneRefusesAll: mixed_guards_have_their_own_verdicts one_bad_member_harms_only_itself
        batch_of_60_is_written batch_of_130_is_written overlapping_batches_have_one_winner_a_key;
    WritesTheFirst25: batch_of_60_is_written batch_of_130_is_written batch_of_settlements
        claims_and_takeovers_in_one_batch read_of_150_keys;
    VerdictsReversed: mixed_guards_have_their_own_verdicts batch_of_60_is_written
        one_bad_member_harms_only_itself;
    VerdictsOfTheRefusedFirst: mixed_guards_have_their_own_verdicts batch_of_130_is_written;
    ReadsTheFirst100: read_of_150_keys batch_of_130_is_written;
    ReadsTheFirst16M: many_large_records_in_one_read;
    ReadsAreStale: absent_key_is_written_and_read_back reads_see_the_latest_write;
    ReadsSkipWhatIsMissing: reads_are_in_order_with_gaps absent_key_is_written_and_read_back;
    ReadsInAnotherOrder: reads_are_in_order_with_gaps read_of_150_keys;
    DropsEffects: effects_of_an_unknown_type_are_refused;
    AppliesWithoutEffects: effects_of_an_unknown_type_are_refused;
    EffectsAreInDoubt: effects_of_an_unknown_type_are_refused;
    AnswersNothingWithAnError: empty_write_has_no_verdicts empty_read_has_no_answers;
}

/// The scenarios that fail against a store with `bug`.
async fn failing(bug: Bug, named: &[&str]) -> BTreeSet<&'static str> {
    let mut failing = BTreeSet::new();
    for scenario in SCENARIOS {
        if scenario.name == SLOW && !named.contains(&SLOW) {
            continue;
        }
        let store = Mutant::new(bug);
        if AssertUnwindSafe((scenario.run)(&store)).catch_unwind().await.is_err() {
            failing.insert(scenario.name);
        }
    }
    failing
}

#[tokio::test]
async fn a_store_without_a_bug_passes() {
    assert_eq!(failing(Bug::None, &[SLOW]).await, BTreeSet::new());
}

#[tokio::test]
async fn every_bug_is_found_and_every_scenario_finds_one() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    let mut idle: BTreeSet<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    for (bug, named) in BUGS {
        let failing = failing(*bug, named).await;
        for scenario in named.iter().filter(|scenario| !failing.contains(*scenario)) {
            missed.push(format!("{bug:?} passes {scenario}"));
        }
        idle.retain(|scenario| !failing.contains(scenario));
    }
    std::panic::set_hook(hook);
    assert!(missed.is_empty(), "the suite misses: {missed:#?}");
    assert!(idle.is_empty(), "no bug makes these scenarios fail: {idle:#?}");
}
