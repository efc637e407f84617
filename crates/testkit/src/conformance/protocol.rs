//! The smallest engine: follows the decisions of `admission`, one key at a time.

use lambda_idempotency_core::{
    admission::{Claim, Finding, Held, Settled, Settlement, admit},
    clock::Timestamp,
    record::Owner,
    store::Verdict,
};

use super::kit::{Slot, explain, secs};

/// A claim of one minute from `now`.
pub(super) fn claim(owner: Owner, now: Timestamp) -> Claim {
    Claim {
        owner,
        lease_until: now.plus(secs(60)),
        retention: secs(3600),
        clock_skew: secs(1),
        fingerprint: None,
        application: None,
        provenance: None,
        payload: None,
    }
}

/// Claims until the key is held, or there is an answer other than [`Finding::Free`].
pub(super) async fn attempt(
    slot: &Slot<'_>,
    claim: &Claim,
    now: Timestamp,
) -> Result<Held, Finding> {
    let mut seen = None;
    for _ in 0..100 {
        match admit(claim, seen.as_ref(), now) {
            Finding::Free => {
                let (guard, held) = claim.over(seen.as_ref(), now);
                match slot.write(guard, Some(&held.record)).await {
                    Verdict::Written => return Ok(held),
                    Verdict::Found(there) => seen = there,
                    Verdict::EffectRefused(refused) => panic!("a claim has no effects: {refused}"),
                    Verdict::Unknown(error) => panic!("a claim failed: {}", explain(&error)),
                }
            }
            finding => return Err(finding),
        }
    }
    panic!("in 100 rounds the store returned a record and then refused a guard that names it")
}

/// Claims a key that must be free.
pub(super) async fn hold(slot: &Slot<'_>, claim: &Claim, now: Timestamp) -> Held {
    match attempt(slot, claim, now).await {
        Ok(held) => held,
        answer => panic!("the key is free, so the claim is granted; got {answer:?}"),
    }
}

/// Settles a claim, with a second write if [`Settled::Again`] asks for it.
pub(super) async fn settle(
    slot: &Slot<'_>,
    held: &Held,
    settlement: &Settlement,
    now: Timestamp,
) -> Settled {
    let (guard, record) = held.write(settlement, now);
    let settled = match slot.write(guard, record.as_ref()).await {
        Verdict::Written => return Settled::Done,
        Verdict::Found(there) => held.settled(settlement, there.as_ref(), now),
        Verdict::EffectRefused(refused) => panic!("there are no effects: {refused}"),
        Verdict::Unknown(error) => panic!("settling failed: {}", explain(&error)),
    };
    let Settled::Again { guard, record } = settled else { return settled };
    match slot.write(guard, Some(&record)).await {
        Verdict::Written => Settled::Done,
        Verdict::Found(there) => held.settled(settlement, there.as_ref(), now),
        Verdict::EffectRefused(refused) => panic!("there are no effects: {refused}"),
        Verdict::Unknown(error) => panic!("settling failed: {}", explain(&error)),
    }
}

pub(super) fn complete(result: &str) -> Settlement {
    Settlement::Complete { result: Some(result.into()), outbox: None }
}

pub(super) fn release() -> Settlement {
    Settlement::Release { error_type: "Declined".into() }
}
