//! A record has its turn to be looked at or claimed: as far as this process does not know the answer, it asks the
//! store. The completed keys are what this invocation shares with others of its process.

use super::{
    calls::PATIENCE,
    claim::claimed,
    rule::{Next, Step},
    wanted::{Begins, Claimed, Wanted},
};
use lambda_idempotency_core::{
    admission::admit,
    outcome::{NotStarted, Outcome},
    record::{IdempotencyRecord, Owner},
    store::{StoreError, StoreErrorKind},
};
use lambda_idempotency_keys::Key;

/// Asks for the key of a record, in what the process remembers and then in the store.
pub(super) fn turn(step: &mut Step<'_, '_>, looks: bool) -> Next {
    let Some(key) = step.entry.key().cloned() else {
        return Next::End(Outcome::Returned(NotStarted::Deadline));
    };
    let known = step.host.known(&key, step.now).and_then(|record| judge(step, &record));
    // A cached mismatch would put the record aside. If its idempotency record was deleted since,
    // it is to be processed, so the store is asked.
    let lets_pass = step.entry.ask().lets_pass;
    match known {
        Some(known) if !(lets_pass && matches!(known, Claimed::Mismatch)) => claimed(step, known),
        _ => ask(step, key, looks),
    }
}

/// Asks the store for the key.
fn ask(step: &mut Step<'_, '_>, key: Key, looks: bool) -> Next {
    let now = step.now;
    let owner = match step.host.owner() {
        Ok(owner) => owner,
        Err(error) => {
            let error = StoreError::new(StoreErrorKind::Unavailable, error.to_string());
            return claimed(step, Claimed::Unavailable(error));
        }
    };
    let provenance = step.host.provenance(step.at, now);
    let begins = if looks { Begins::Look } else { Begins::Write(step.entry.take_seen()) };
    let losses = if step.has_turn { step.entry.losses() } else { 0 };
    // A claim is useless if its lease has ended when it is granted.
    let lease_until = step.terms.lease_until(now);
    let mut until = step.budget.claim_deadline(now).min(lease_until);
    let mut last = until;
    if !step.setting.is_redelivered {
        // A record that has waited for a busy key is looked up later, too: it may get a result.
        last = step.budget.claim_deadline(now);
        last = last.max(step.budget.last_claim(now, step.host.pace()));
    }
    if step.setting.claims_to_the_end() {
        until = last;
    }
    if step.has_turn && step.is_beside_others {
        // All others wait for it.
        let soon = now.plus(PATIENCE);
        (until, last) = (until.min(soon), last.min(soon));
    }
    let is_optimistic = !step.setting.policy.mode.claims();
    let claim = step.claim_by(owner, provenance);
    Next::Claim(Wanted { at: step.at, key, claim, begins, losses, until, last, is_optimistic })
}

/// The answer to a claim that finds this record; `None` if the claim has to be sent.
fn judge(step: &Step<'_, '_>, record: &IdempotencyRecord) -> Option<Claimed> {
    let claim = step.claim_by(Owner::from_bits(0), None);
    match Claimed::of(admit(&claim, Some(record), step.now), Some(record)) {
        Ok(Claimed::Held(_)) | Err(_) => None,
        Ok(claimed) => Some(claimed),
    }
}
