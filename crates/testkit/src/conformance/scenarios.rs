//! The list of all scenarios, in one place.

use lambda_idempotency_core::{clock::BoxFuture, store::Store};

/// One scenario of the suite.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Scenario {
    /// The module it is in.
    pub module: &'static str,
    /// The name of the function.
    pub name: &'static str,
    /// Runs it; panics if the store does not conform.
    pub run: for<'a> fn(&'a dyn Store) -> BoxFuture<'a, ()>,
}

/// Makes a test of every scenario of the conformance suite.
///
/// Takes an async function, or a closure that returns a future, which makes the store:
///
/// ```
/// use lambda_idempotency_core::memory::MemoryStore;
///
/// async fn make() -> MemoryStore {
///     MemoryStore::new()
/// }
///
/// mod conformance {
///     lambda_idempotency_testkit::store_conformance!(super::make);
/// }
/// ```
///
/// Each test is a `#[tokio::test]`, so the calling crate needs `tokio` with `macros` and `rt`. Give
/// other attributes to replace that:
///
/// ```
/// # use lambda_idempotency_core::memory::MemoryStore;
/// lambda_idempotency_testkit::store_conformance!(
///     || async { MemoryStore::new() },
///     #[tokio::test(flavor = "current_thread")]
///     #[ignore = "needs a server"]
/// );
/// ```
#[macro_export]
macro_rules! store_conformance {
    ($make:expr, $(#[$attribute:meta])+) => {
        $crate::__scenarios! { __scenario_test [[$(#[$attribute])+] [$make]] }
    };
    ($make:expr $(,)?) => {
        $crate::store_conformance! { $make, #[tokio::test] }
    };
}

/// Calls `$crate::$callback!` with `$arguments` and the whole list.
#[doc(hidden)]
#[macro_export]
macro_rules! __scenarios {
    ($callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments
            claiming {
                absent_finds_any_record
                completion_restarts_the_retention
                fingerprint_outlives_the_completion
                another_application_is_refused_and_changes_nothing
                permanent_failure_is_the_answer_until_it_expires
                similar_keys_do_not_meet
                long_keys_are_kept_whole
                reads_see_the_latest_write
                lapsed_record_is_taken_over
                at_its_last_instant_it_still_counts
                record_without_a_lease_is_locked_until_it_expires
            }
            fencing {
                each_owner_has_a_higher_fence
                late_settlements_change_nothing
                forgotten_claim_leaves_nothing
                stale_takeover_cannot_reopen_a_completed_key
                successor_settles_undisturbed
                settled_is_final_for_its_own_owner
                renewal_is_guarded_by_its_lease
                token_of_one_key_opens_no_other
                late_freeing_cannot_delete_the_successors_completion
            }
            ambiguity {
                retried_claim_meets_its_own_token
                longer_renewal_after_a_lost_one_is_written
                past_the_deadline_it_tells_the_truth
                retried_settlement_is_done
                retried_undo_keeps_the_history
                duplicate_of_a_claim_cannot_reopen_a_completed_key
                duplicate_of_a_release_cannot_free_the_next_owner
                completion_that_finds_nothing_is_written_under_absent
                completion_that_finds_a_successors_is_answered_with_it
            }
            boundaries {
                unchanged_names_each_field
                guards_on_nothing_find_nothing
                owned_by_needs_its_owner_in_progress
                owned_by_holds_after_the_lease
                deletes_are_guarded
                delete_of_what_is_gone_is_written
            }
            batches {
                empty_calls_have_no_answers
                mixed_guards_have_their_own_verdicts
                batch_of_130_is_written
                batch_of_settlements
                settlements_have_the_provenance_that_they_name
                one_bad_member_harms_only_itself
                result_that_is_too_large_leaves_the_claim
                reads_are_in_order_with_gaps
                read_of_150_keys
            }
            fields {
                every_field_present_or_absent
                a_write_replaces_every_field
                each_optional_field_by_itself
                marks_and_renewals_change_nothing_else
                provenance_of_every_shape
                counters
                texts_byte_for_byte
                large_result
                many_large_records_in_one_read
                owners_of_every_shape
                instants_keep_their_precision
            }
            contention {
                fifty_claimants_have_one_winner
                takeovers_of_a_lapsed_record_have_one_winner
                claims_through_the_protocol_have_one_winner
                an_owner_against_takeovers_has_one_winner
                overlapping_batches_have_one_winner_a_key
                every_failure_under_contention_is_counted
                different_keys_at_once_all_win
            }
            capabilities {
                effects_of_an_unknown_type_are_refused
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __scenario_test {
    ($arguments:tt $($module:ident { $($name:ident)+ })+) => {
        $($( $crate::__scenario_test! { @one $arguments $module $name } )+)+
    };
    (@one [[$(#[$attribute:meta])+] [$make:expr]] $module:ident $name:ident) => {
        $(#[$attribute])+
        async fn $name() {
            let store = ($make)().await;
            $crate::conformance::$module::$name(&store).await;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __scenario_list {
    ([] $($module:ident { $($name:ident)+ })+) => {
        &[$($( $crate::conformance::Scenario {
            module: stringify!($module),
            name: stringify!($name),
            run: |store| Box::pin($crate::conformance::$module::$name(store)),
        }, )+)+]
    };
}

/// Every scenario, in the order of the modules. Use this to run them without the macro.
pub const SCENARIOS: &[Scenario] = __scenarios! { __scenario_list [] };
