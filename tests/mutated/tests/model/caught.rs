//! Each mutant breaks the property that its mistake concerns.

use crate::{
    mutants::{answers, claims, guards, settlements},
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

tests! {
    a_takeover_without_clock_skew:
        catch(claims::NO_CLOCK_SKEW, || faults(0, 0, 0), &[ONE_OWNER, BELIEF_IS_TRUE, FINAL]);
    a_takeover_at_the_last_instant: catch(claims::LAST_INSTANT, || faults(0, 0, 0), &[ONE_OWNER]);
    a_claim_that_does_not_recognise_its_own_token:
        catch(claims::IGNORES_ITS_TOKEN, || faults(0, 1, 0), &[OWN_WORK_KNOWN]);
    a_retention_that_ends_before_the_lease:
        catch(
            claims::EXPIRES_BEFORE_ITS_LEASE,
            || Setup { retention: 1, ..faults(0, 0, 0) },
            &[EXPIRES_AFTER_LEASE, SWEEP_SPARES_HOLDERS]
        );
    an_expiry_without_clock_skew:
        catch(claims::EXPIRES_WITH_ITS_LEASE, || Setup { retention: 1, ..faults(0, 0, 0) }, &[SWEEP_SPARES_HOLDERS]);
    a_claim_that_locks_until_it_expires:
        catch(claims::LOCKS_UNTIL_EXPIRY, || Setup { retention: 9, ..faults(1, 0, 0) }, &[NEVER_STUCK]);
    a_takeover_that_forgets_failed_attempts:
        catch(claims::FORGETS_FAILED_ATTEMPTS, || faults(0, 0, 1), &[COUNTS_KEPT]);
    a_takeover_that_forgets_lost_attempts: catch(claims::FORGETS_LOST_ATTEMPTS, || faults(1, 0, 0), &[COUNTS_KEPT]);
    a_claim_over_a_completed_record: catch(claims::RUNS_COMPLETED_AGAIN, || faults(0, 0, 0), &[FINAL]);
    an_acknowledgement_because_the_key_is_busy:
        catch(answers::ACKNOWLEDGES_BUSY, || faults(0, 0, 0), &[ACKNOWLEDGED_LAST, NOTHING_LOST]);
    a_takeover_while_the_answer_to_a_claim_is_on_its_way:
        catch(
            claims::NO_CLOCK_SKEW,
            || Setup { network: Network::SlowBothWays, ..faults(0, 0, 0) },
            &[STARTS_AS_OWNER]
        );
    a_takeover_that_does_not_name_the_last_owner:
        catch(guards::NAMES_NO_LAST_OWNER, || faults(0, 1, 2), &[COUNTS_KEPT]);
    a_settlement_without_the_owner: catch(guards::SETTLES_FOR_ANYONE, || faults(0, 0, 0), &[FENCED, BELIEF_IS_TRUE]);
    a_release_of_a_completed_record:
        catch(guards::SETTLES_IN_ANY_STATUS, || Setup { regret: true, ..faults(0, 1, 0) }, &[FINAL, FENCED]);
    a_completion_over_a_successor: catch(guards::COMPLETES_OVER_ANYTHING, || faults(0, 1, 0), &[FENCED]);
    a_failure_that_deletes_the_record: catch(settlements::DELETES_ON_FAILURE, || faults(0, 0, 1), &[COUNTS_KEPT]);
    an_undo_that_deletes_attempt_counts:
        catch(settlements::UNDO_FORGETS, || Setup { undo: true, ..faults(0, 0, 1) }, &[COUNTS_KEPT]);
    a_late_renewal_that_shortens_a_newer_one:
        catch(
            settlements::RENEWS_BY_OWNER_ALONE,
            || Setup { renewal: 3, ..faults(0, 1, 0) },
            &[ONE_OWNER, BELIEF_IS_TRUE]
        );
    a_renewal_that_leaves_the_expiry:
        catch(settlements::RENEWS_THE_LEASE_ALONE, || Setup { renewal: 3, ..faults(0, 0, 0) }, &[EXPIRES_AFTER_LEASE]);
    a_settlement_that_does_not_recognise_itself:
        catch(settlements::IGNORES_ITS_SETTLEMENT, || faults(0, 1, 0), &[OWN_WORK_KNOWN]);
    a_renewal_that_takes_itself_for_a_successor:
        catch(settlements::TAKES_ITSELF_FOR_A_SUCCESSOR, || Setup { renewal: 3, ..faults(0, 1, 0) }, &[NOT_MISLED]);
    a_completion_that_takes_itself_for_a_successor:
        catch(
            settlements::TAKES_ITSELF_FOR_A_SUCCESSOR,
            || Setup { network: Network::Slow, ..faults(0, 1, 0) },
            &[NOT_MISLED]
        );
    a_completion_that_finds_no_record_and_counts_as_done:
        catch(settlements::TAKES_MISSING_FOR_DONE, || faults(0, 0, 0), &[ACKNOWLEDGED_LAST]);
    an_acknowledgement_because_a_successor_holds_the_key:
        catch(settlements::TRUSTS_THE_SUCCESSOR, || faults(0, 0, 0), &[ACKNOWLEDGED_LAST]);
}

#[test]
fn a_takeover_that_names_status_and_owner_only() {
    let setup = || Setup { renewal: 3, ..faults(0, 0, 0) };
    catch(guards::NAMES_STATUS_AND_OWNER, setup, &[ONE_OWNER, BELIEF_IS_TRUE]);
    catch(guards::NAMES_STATUS_AND_OWNER, || faults(0, 1, 2), &[COUNTS_KEPT]);
}

#[test]
fn a_takeover_that_does_not_name_the_lease() {
    // A renewal in the same second as its claim changes the lease and not the expiry.
    let setup = || Setup { renewal: 3, retention: 6, ..faults(0, 0, 0) };
    catch(guards::NAMES_NO_LEASE, setup, &[ONE_OWNER, BELIEF_IS_TRUE]);
}
