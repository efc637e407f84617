//! Mutants of a store: each has one bug, and the scenarios listed beside it must fail.

use lambda_idempotency_testkit::conformance::SCENARIOS;

use crate::{assert_found, broken_store::Mutant, fails};

/// The one slow scenario, which is run only with the bugs that list it.
const SLOW: &str = "many_large_records_in_one_read";

macro_rules! mutants {
    ($($bug:ident: $($scenario:ident)+;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Bug {
            None,
            $($bug),+
        }

        const BUGS: &[(Bug, &[&str])] = &[$((Bug::$bug, &[$(stringify!($scenario)),+])),+];
    };
}

mutants! {
    AbsentAlwaysHolds: absent_finds_any_record fifty_claimants_have_one_winner deletes_are_guarded
        retried_claim_meets_its_own_token duplicate_of_a_claim_cannot_reopen_a_completed_key
        completion_that_finds_a_successors_is_answered_with_it;
    AbsentIgnoresExpired: absent_finds_any_record;
    AbsentIgnoresLapsed: absent_finds_any_record;
    AbsentIgnoresSettled: absent_finds_any_record;
    DeletedForGood: completion_that_finds_nothing_is_written_under_absent;
    OwnedByIgnoresOwner: late_settlements_change_nothing deletes_are_guarded owned_by_needs_its_owner_in_progress
        duplicate_of_a_release_cannot_free_the_next_owner token_of_one_key_opens_no_other;
    OwnedByIgnoresStatus: settled_is_final_for_its_own_owner owned_by_needs_its_owner_in_progress batch_of_settlements;
    OwnedByComparesTheEnd: owned_by_needs_its_owner_in_progress;
    OwnedByTakesLastOwner: owned_by_needs_its_owner_in_progress retried_settlement_is_done;
    OwnedByChecksTheLease: owned_by_holds_after_the_lease;
    OwnedByCreates: guards_on_nothing_find_nothing mixed_guards_have_their_own_verdicts;
    UnchangedCreates: guards_on_nothing_find_nothing;
    UnchangedIgnoresStatus: unchanged_names_each_field;
    UnchangedIgnoresAll: stale_takeover_cannot_reopen_a_completed_key unchanged_names_each_field
        an_owner_against_takeovers_has_one_winner longer_renewal_after_a_lost_one_is_written;
    UnchangedIgnoresOwner: unchanged_names_each_field;
    UnchangedIgnoresLastOwner: unchanged_names_each_field deletes_are_guarded;
    UnchangedIgnoresLease: unchanged_names_each_field renewal_is_guarded_by_its_lease;
    UnchangedIgnoresExpiry: unchanged_names_each_field;
    UnchangedTakesNoneForAny: unchanged_names_each_field;
    UnchangedNeverMatchesNone: unchanged_names_each_field record_without_a_lease_is_locked_until_it_expires;
    NeverDeletes: deletes_are_guarded forgotten_claim_leaves_nothing;
    DeletesWhateverIsThere: deletes_are_guarded late_settlements_change_nothing
        late_freeing_cannot_delete_the_successors_completion;
    DeleteOfMissingIsFound: delete_of_what_is_gone_is_written;
    Merges: a_write_replaces_every_field;
    KeepsOldError: a_write_replaces_every_field;
    ForgetsOwner: every_field_present_or_absent each_optional_field_by_itself owners_of_every_shape
        different_keys_at_once_all_win successor_settles_undisturbed retried_claim_meets_its_own_token;
    ForgetsLastOwner: every_field_present_or_absent each_optional_field_by_itself retried_undo_keeps_the_history;
    ForgetsFailedAttempts: counters retried_undo_keeps_the_history;
    ForgetsFence: counters each_owner_has_a_higher_fence;
    FenceIn32Bits: counters every_field_present_or_absent each_owner_has_a_higher_fence;
    KeepsOldFence: each_owner_has_a_higher_fence a_write_replaces_every_field;
    ForgetsLostAttempts: counters lapsed_record_is_taken_over;
    ForgetsConsecutiveLosses: counters lapsed_record_is_taken_over;
    ExpiryKeptFromTheClaim: completion_restarts_the_retention;
    ExpiryAMinuteEarly: at_its_last_instant_it_still_counts instants_keep_their_precision;
    ForgetsLease: each_optional_field_by_itself instants_keep_their_precision;
    ForgetsFingerprint: each_optional_field_by_itself texts_byte_for_byte;
    CompletionForgetsFingerprint: fingerprint_outlives_the_completion every_field_present_or_absent;
    CompletionForgetsLease: marks_and_renewals_change_nothing_else every_field_present_or_absent;
    FailureForgetsResult: permanent_failure_is_the_answer_until_it_expires every_field_present_or_absent;
    ForgetsResult: each_optional_field_by_itself texts_byte_for_byte large_result absent_finds_any_record
        successor_settles_undisturbed;
    ForgetsError: each_optional_field_by_itself texts_byte_for_byte retried_settlement_is_done;
    ForgetsApplication: each_optional_field_by_itself another_application_is_refused_and_changes_nothing;
    ForgetsProvenance: each_optional_field_by_itself every_field_present_or_absent provenance_of_every_shape;
    KeepsOldProvenance: a_write_replaces_every_field;
    ReplacingForgetsProvenance: settlements_have_the_provenance_that_they_name;
    ForgetsSteps: each_optional_field_by_itself every_field_present_or_absent;
    KeepsOldSteps: a_write_replaces_every_field;
    ForgetsOutbox: each_optional_field_by_itself every_field_present_or_absent;
    KeepsOldOutbox: a_write_replaces_every_field;
    ForgetsPayload: each_optional_field_by_itself every_field_present_or_absent;
    KeepsOldPayload: a_write_replaces_every_field;
    MarkForgetsResult: marks_and_renewals_change_nothing_else;
    RenewalForgetsPayload: marks_and_renewals_change_nothing_else;
    ProvenanceInSeconds: provenance_of_every_shape;
    CountsInAByte: counters;
    LeaseInSeconds: instants_keep_their_precision reads_see_the_latest_write;
    ResultReformatted: texts_byte_for_byte;
    ResultCutAt64K: large_result many_large_records_in_one_read;
    TextInAscii: texts_byte_for_byte large_result;
    EmptyForAbsent: every_field_present_or_absent absent_finds_any_record;
    TooLargeIsCut: one_bad_member_harms_only_itself result_that_is_too_large_leaves_the_claim;
    TooLargeIsTransient: one_bad_member_harms_only_itself result_that_is_too_large_leaves_the_claim;
    TooLargeIsInDoubt: one_bad_member_harms_only_itself result_that_is_too_large_leaves_the_claim;
    TooLargeDeletes: result_that_is_too_large_leaves_the_claim;
    KeysFoldCase: similar_keys_do_not_meet;
    KeysTrimmed: similar_keys_do_not_meet;
    KeysInAscii: similar_keys_do_not_meet;
    KeysCutAt255: long_keys_are_kept_whole;
    KeysArePrefixes: different_keys_at_once_all_win batch_of_130_is_written;
    LateWritesAreDenied: past_the_deadline_it_tells_the_truth;
    LateWritesAreConfirmed: past_the_deadline_it_tells_the_truth;
    LooksThenWrites: an_owner_against_takeovers_has_one_winner every_failure_under_contention_is_counted
        fifty_claimants_have_one_winner takeovers_of_a_lapsed_record_have_one_winner
        claims_through_the_protocol_have_one_winner overlapping_batches_have_one_winner_a_key;
    RepeatIsWritten: retried_claim_meets_its_own_token retried_settlement_is_done batch_of_settlements;
    AppliesWhatItRefuses: absent_finds_any_record renewal_is_guarded_by_its_lease late_settlements_change_nothing
        unchanged_names_each_field duplicate_of_a_claim_cannot_reopen_a_completed_key;
    RefusalShowsNothing: absent_finds_any_record fifty_claimants_have_one_winner batch_of_settlements;
    RefusalShowsTheNew: absent_finds_any_record fifty_claimants_have_one_winner guards_on_nothing_find_nothing;
    RefusalIsWritten: guards_on_nothing_find_nothing late_settlements_change_nothing unchanged_names_each_field;
    RefusalIsAnError: absent_finds_any_record unchanged_names_each_field;
    OneRefusesAll: mixed_guards_have_their_own_verdicts one_bad_member_harms_only_itself batch_of_130_is_written
        overlapping_batches_have_one_winner_a_key;
    WritesTheFirst25: batch_of_130_is_written batch_of_settlements read_of_150_keys;
    VerdictsReversed: mixed_guards_have_their_own_verdicts batch_of_130_is_written one_bad_member_harms_only_itself;
    VerdictsOfTheRefusedFirst: mixed_guards_have_their_own_verdicts batch_of_130_is_written;
    ReadsTheFirst100: read_of_150_keys batch_of_130_is_written;
    ReadsTheFirst16M: many_large_records_in_one_read;
    ReadsAreStale: absent_finds_any_record reads_see_the_latest_write;
    ReadsSkipWhatIsMissing: reads_are_in_order_with_gaps absent_finds_any_record;
    ReadsInAnotherOrder: reads_are_in_order_with_gaps read_of_150_keys;
    DropsEffects: effects_of_an_unknown_type_are_refused;
    AppliesWithoutEffects: effects_of_an_unknown_type_are_refused;
    EffectsAreInDoubt: effects_of_an_unknown_type_are_refused;
    AnswersNothingWithAnError: empty_calls_have_no_answers;
}

#[tokio::test]
async fn every_bug_is_found_and_every_scenario_finds_one() {
    let all = SCENARIOS.iter().map(|scenario| scenario.name);
    assert_found(BUGS, Bug::None, all, async |bug, named| {
        let mut failing = Vec::new();
        for scenario in SCENARIOS {
            let is_skipped = scenario.name == SLOW && !named.contains(&SLOW);
            if !is_skipped && fails((scenario.run)(&Mutant::new(bug))).await {
                failing.push(scenario.name);
            }
        }
        failing
    })
    .await;
}
