//! A write reaches the store: whether it is applied, and whether it breaks a property.

use std::sync::LazyLock;

use lambda_idempotency_core::{
    effects::{Effects, RefusalReason, RefusedEffect},
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Verdict, Write},
};

use crate::{
    outboxes,
    setup::Setup,
    world::{Flaw, World},
};

/// Applies a write if its guard holds.
pub(crate) fn land(setup: &Setup, world: &mut World, write: &Write) -> Verdict {
    let key = setup.key(&write.key);
    let found = world.store[key].take();
    if !write.applies(found.as_ref()) {
        world.store[key].clone_from(&found);
        return Verdict::Found(found);
    }
    if let Some(refused) = commit(setup, world, key, write) {
        world.store[key].clone_from(&found);
        return Verdict::EffectRefused(refused);
    }
    if let Some(old) = found.as_ref().filter(|old| write.record.as_ref() != Some(*old)) {
        check(setup, world, key, old, write);
    }
    world.store[key].clone_from(&write.record);
    Verdict::Written
}

/// Commits the effects of a write whose guard holds. Returns the effect that is refused, if one is.
fn commit(setup: &Setup, world: &mut World, key: usize, write: &Write) -> Option<RefusedEffect> {
    let completes = |record: &IdempotencyRecord| record.status == Status::Completed;
    if !setup.policy.mode.commits_effects() || !write.record.as_ref().is_some_and(completes) {
        return None;
    }
    let effect = write.effects.as_ref().and_then(|effects| effects.get::<Effect>());
    if effect == Some(&Effect::Refused) {
        setup.witness.saw("refused effect");
        return Some(RefusedEffect::new(RefusalReason::ConditionFailed));
    }
    if let Some(effect) = effect {
        world.committed[key] += 1;
        world.effects[key].add(usize::from(*effect == Effect::HoldsForOther));
    }
    if world.committed[key] != 1 {
        world.flaws.add(Flaw::NotCommittedOnce);
    }
    None
}

/// What a handler collects, where effects are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Holds,
    Refused,
    /// Of the other payload.
    HoldsForOther,
}

impl Effect {
    /// The same value for the same effect, so that equal states are equal.
    pub(crate) fn collected(self) -> Effects {
        static ALL: LazyLock<[Effects; 3]> = LazyLock::new(|| {
            [Effect::Holds, Effect::Refused, Effect::HoldsForOther].map(Effects::new)
        });
        ALL[self as usize].clone()
    }
}

/// Whether the store would apply this write, and change the record.
pub(crate) fn would_change(setup: &Setup, world: &World, write: &Write) -> bool {
    let found = &world.store[setup.key(&write.key)];
    *found != write.record && write.applies(found.as_ref())
}

/// The claim that a write makes, if it makes one.
pub(crate) fn claim(write: &Write) -> Option<Owner> {
    let record = write.record.as_ref().filter(|record| record.status == Status::InProgress)?;
    let owner = record.owner?;
    let renews = match &write.guard {
        Guard::Absent => false,
        Guard::OwnedBy(_) => true,
        Guard::Unchanged(seen) => seen.owner == Some(owner),
    };
    (!renews).then_some(owner)
}

fn check(setup: &Setup, world: &mut World, key: usize, old: &IdempotencyRecord, write: &Write) {
    if old.status != Status::InProgress {
        if !outboxes::marks(world, key, old, write) && world.now <= old.expires_at {
            world.flaws.add(Flaw::NotFinal);
        }
        return;
    }
    let takes_over = claim(write).is_some();
    let lease = old.lease_until.unwrap_or(old.expires_at);
    if takes_over && !old.is_given_up() {
        setup.witness.saw("takeover");
        if world.now <= lease {
            world.flaws.add(Flaw::TakenWhileHeld);
        }
    }
    let lost = u32::from(takes_over && !old.is_given_up());
    let lost_attempts = old.lost_attempts + lost;
    let over = |record: &IdempotencyRecord| record.failed_attempts + record.lost_attempts;
    let kept = match &write.record {
        Some(new) if new.status != Status::InProgress => true,
        Some(new) => {
            // A failure and a stop end a row of losses.
            let heard_of = !takes_over && over(new) > over(old);
            let losses = if heard_of { 0 } else { old.consecutive_losses + lost };
            new.failed_attempts >= old.failed_attempts
                && new.lost_attempts >= lost_attempts
                && new.consecutive_losses == losses
        }
        // A mutex is forgotten by its owner.
        None if !setup.policy.mode.keeps_completions()
            && matches!(write.guard, Guard::OwnedBy(_)) =>
        {
            true
        }
        None => old.failed_attempts == 0 && lost_attempts == 0,
    };
    if !kept {
        world.flaws.add(Flaw::CountsLost);
    }
    let goes_on = |new: &IdempotencyRecord| new.status == Status::Completed || new.steps.is_some();
    if old.steps.is_some() && !write.record.as_ref().is_some_and(goes_on) {
        world.flaws.add(Flaw::StepForgotten);
    }
}
