//! Each mutant breaks the property that its mistake concerns.

use crate::{
    mutants::{claims, engine, guards, settlements},
    properties::{
        ACKNOWLEDGED_LAST, BELIEF_IS_TRUE, COUNTS_KEPT, EXPIRES_AFTER_LEASE, FENCED, FINAL,
        NEVER_STUCK, NOT_MISLED, NOTHING_LOST, ONE_OWNER, OWN_WORK_KNOWN, STARTS_AS_OWNER,
        SWEEP_SPARES_HOLDERS,
    },
    run::catch,
    setup::{Network, Setup},
    state::Faults,
};

fn faults(crashes: u8, timeouts: u8, errors: u8) -> Setup {
    Setup { faults: Faults { crashes, timeouts, errors }, ..Setup::new("a mutant") }
}

#[test]
fn a_takeover_without_clock_skew() {
    catch::<claims::NoClockSkew>(|| faults(0, 0, 0), &[ONE_OWNER, BELIEF_IS_TRUE, FINAL]);
}

#[test]
fn a_takeover_at_the_last_instant() {
    catch::<claims::LastInstant>(|| faults(0, 0, 0), &[ONE_OWNER]);
}

#[test]
fn a_claim_that_does_not_recognise_its_own_token() {
    catch::<claims::IgnoresItsToken>(|| faults(0, 1, 0), &[OWN_WORK_KNOWN]);
}

#[test]
fn a_retention_that_ends_before_the_lease() {
    let setup = || Setup { retention: 1, ..faults(0, 0, 0) };
    catch::<claims::ExpiresBeforeItsLease>(setup, &[EXPIRES_AFTER_LEASE, SWEEP_SPARES_HOLDERS]);
}

#[test]
fn an_expiry_without_clock_skew() {
    let setup = || Setup { retention: 1, ..faults(0, 0, 0) };
    catch::<claims::ExpiresWithItsLease>(setup, &[SWEEP_SPARES_HOLDERS]);
}

#[test]
fn a_claim_that_locks_until_it_expires() {
    let setup = || Setup { retention: 9, ..faults(1, 0, 0) };
    catch::<claims::LocksUntilExpiry>(setup, &[NEVER_STUCK]);
}

#[test]
fn a_takeover_that_forgets_failed_attempts() {
    catch::<claims::ForgetsFailedAttempts>(|| faults(0, 0, 1), &[COUNTS_KEPT]);
}

#[test]
fn a_takeover_that_forgets_lost_attempts() {
    catch::<claims::ForgetsLostAttempts>(|| faults(1, 0, 0), &[COUNTS_KEPT]);
}

#[test]
fn a_claim_over_a_completed_record() {
    catch::<claims::RunsCompletedAgain>(|| faults(0, 0, 0), &[FINAL]);
}

#[test]
fn an_acknowledgement_because_the_key_is_busy() {
    catch::<engine::AcknowledgesBusy>(|| faults(0, 0, 0), &[ACKNOWLEDGED_LAST, NOTHING_LOST]);
}

#[test]
fn a_handler_that_starts_after_its_lease() {
    let setup = || Setup { network: Network::SlowBothWays, ..faults(0, 0, 0) };
    catch::<engine::StartsLate>(setup, &[STARTS_AS_OWNER]);
}

#[test]
fn a_takeover_that_names_status_and_owner_only() {
    let setup = || Setup { renewal: 3, ..faults(0, 0, 0) };
    catch::<guards::NamesStatusAndOwner>(setup, &[ONE_OWNER, BELIEF_IS_TRUE]);
    catch::<guards::NamesStatusAndOwner>(|| faults(0, 1, 2), &[COUNTS_KEPT]);
}

#[test]
fn a_takeover_that_does_not_name_the_last_owner() {
    catch::<guards::NamesNoLastOwner>(|| faults(0, 1, 2), &[COUNTS_KEPT]);
}

#[test]
fn a_takeover_that_does_not_name_the_lease() {
    // A renewal in the same second as its claim changes the lease and not the expiry.
    let setup = || Setup { renewal: 3, retention: 6, ..faults(0, 0, 0) };
    catch::<guards::NamesNoLease>(setup, &[ONE_OWNER, BELIEF_IS_TRUE]);
}

#[test]
fn a_settlement_without_the_owner() {
    catch::<guards::SettlesForAnyone>(|| faults(0, 0, 0), &[FENCED, BELIEF_IS_TRUE]);
}

#[test]
fn a_release_of_a_completed_record() {
    let setup = || Setup { regret: true, ..faults(0, 1, 0) };
    catch::<guards::SettlesInAnyStatus>(setup, &[FINAL, FENCED]);
}

#[test]
fn a_completion_over_a_successor() {
    catch::<guards::CompletesOverAnything>(|| faults(0, 1, 0), &[FENCED]);
}

#[test]
fn a_failure_that_deletes_the_record() {
    catch::<settlements::DeletesOnFailure>(|| faults(0, 0, 1), &[COUNTS_KEPT]);
}

#[test]
fn an_undo_that_deletes_attempt_counts() {
    let setup = || Setup { undo: true, ..faults(0, 0, 1) };
    catch::<settlements::UndoForgets>(setup, &[COUNTS_KEPT]);
}

#[test]
fn a_late_renewal_that_shortens_a_newer_one() {
    let setup = || Setup { renewal: 3, ..faults(0, 1, 0) };
    catch::<settlements::RenewsByOwnerAlone>(setup, &[ONE_OWNER, BELIEF_IS_TRUE]);
}

#[test]
fn a_renewal_that_leaves_the_expiry() {
    let setup = || Setup { renewal: 3, ..faults(0, 0, 0) };
    catch::<settlements::RenewsTheLeaseAlone>(setup, &[EXPIRES_AFTER_LEASE]);
}

#[test]
fn a_settlement_that_does_not_recognise_itself() {
    catch::<settlements::IgnoresItsSettlement>(|| faults(0, 1, 0), &[OWN_WORK_KNOWN]);
}

#[test]
fn a_renewal_that_takes_itself_for_a_successor() {
    let setup = || Setup { renewal: 3, ..faults(0, 1, 0) };
    catch::<settlements::TakesItselfForASuccessor>(setup, &[NOT_MISLED]);
}

#[test]
fn a_completion_that_takes_itself_for_a_successor() {
    let setup = || Setup { network: Network::Slow, ..faults(0, 1, 0) };
    catch::<settlements::TakesItselfForASuccessor>(setup, &[NOT_MISLED]);
}

#[test]
fn a_completion_that_finds_no_record_and_counts_as_done() {
    catch::<settlements::TakesMissingForDone>(|| faults(0, 0, 0), &[ACKNOWLEDGED_LAST]);
}

#[test]
fn an_acknowledgement_because_a_successor_holds_the_key() {
    catch::<settlements::TrustsTheSuccessor>(|| faults(0, 0, 0), &[ACKNOWLEDGED_LAST]);
}
