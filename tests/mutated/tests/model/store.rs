//! A write reaches the store: whether it is applied, and whether it breaks a property.

use std::sync::LazyLock;

use crate::core::{
    effects::{Effects, RefusalReason, RefusedEffect},
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion, Verdict, Write},
};

use crate::{
    keeps, outboxes,
    properties::{
        COMMITTED_ONCE, COUNTS_KEPT, FENCED, FENCES_RISE, FINAL, ONE_OWNER, STEPS_KEPT,
        SWEEP_SPARES_HOLDERS, believed,
    },
    setup::{SKEW, Setup},
    world::World,
};

/// Applies a write if its guard holds.
pub(crate) fn land(setup: &Setup, world: &mut World, write: &Write) -> Verdict {
    let key = setup.key(&write.key);
    let found = world.store[key].take();
    if !applies(write, found.as_ref()) {
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
    if write.guard == Guard::Absent && claim(write).is_none() && write.record.is_some() {
        setup.witness.saw("completed anew");
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
        world.blame(COMMITTED_ONCE);
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
    *found != write.record && applies(write, found.as_ref())
}

/// Whether the store applies a write: with a rule that is left out, guards name less.
fn applies(write: &Write, found: Option<&IdempotencyRecord>) -> bool {
    match (&write.guard, found) {
        (Guard::Unchanged(seen), Some(record)) => {
            let (mut seen, other) = (seen.clone(), RecordVersion::of(record));
            let names_times = keeps("GuardsNameTimes");
            if !names_times || !keeps("GuardsNameTheLastOwner") {
                seen.last_owner = other.last_owner;
            }
            if !names_times || !keeps("GuardsNameTheLease") {
                seen.lease_until = other.lease_until;
            }
            if !names_times {
                seen.expires_at = other.expires_at;
            }
            seen == other
        }
        (Guard::OwnedBy(_), Some(record)) if !keeps("OwnersSettle") => {
            record.status == Status::InProgress
        }
        (Guard::OwnedBy(owner), Some(record)) if !keeps("SettlesWhatIsInProgress") => {
            record.owner == Some(*owner)
        }
        (Guard::Absent, Some(_)) if !keeps("CompletesWhatIsGone") => {
            write.record.as_ref().is_some_and(|record| record.status == Status::Completed)
        }
        _ => write.applies(found),
    }
}

/// Whether a server whose clock is ahead would remove the record of this key.
pub(crate) fn can_sweep(world: &World, key: usize) -> bool {
    world.store[key].as_ref().is_some_and(|record| world.now.plus(SKEW) > record.expires_at)
}

/// The server removes an expired record.
pub(crate) fn sweep(setup: &Setup, world: &mut World, key: usize) {
    let Some(old) = world.store[key].take() else { return };
    setup.witness.saw("sweep");
    let handlers = world.invocations.iter().flat_map(|one| &one.own.running);
    let mut holders = handlers.filter_map(|handler| believed(world, handler));
    if holders.any(|(owner, _)| old.owner == Some(owner)) {
        world.blame(SWEEP_SPARES_HOLDERS);
    }
    world.forgotten[key] |= old.status == Status::InProgress && !world.strays.is_empty();
    world.gone[key] |= old.status == Status::Completed;
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
    let is_final = old.status != Status::InProgress && world.now <= old.expires_at;
    if !outboxes::marks(world, key, old, write) && is_final {
        world.blame(FINAL);
    }
    let takes_over = claim(write).is_some();
    check_writer(world, old, write, takes_over);
    if old.status != Status::InProgress {
        return;
    }
    let lease = old.lease_until.unwrap_or(old.expires_at);
    if takes_over && !old.is_given_up() {
        setup.witness.saw("takeover");
        if world.now <= lease {
            world.blame(ONE_OWNER);
        }
    }
    // Counts of another application are not carried on.
    let is_foreign =
        takes_over && write.record.as_ref().is_some_and(|new| new.application != old.application);
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
    if !kept && !world.forgotten[key] && !is_foreign {
        world.blame(COUNTS_KEPT);
    }
    let goes_on = |new: &IdempotencyRecord| new.status == Status::Completed || new.steps.is_some();
    if old.steps.is_some() && !write.record.as_ref().is_some_and(goes_on) {
        world.blame(STEPS_KEPT);
    }
}

/// A settlement changes only the record of its own claim, and keeps its fence. A claim has a higher one.
fn check_writer(world: &mut World, old: &IdempotencyRecord, write: &Write, takes_over: bool) {
    let by = match (&write.record, &write.guard) {
        (Some(new), _) => new.owner.or(new.last_owner),
        (None, Guard::OwnedBy(owner)) => Some(*owner),
        (None, Guard::Unchanged(_) | Guard::Absent) => old.owner,
    };
    let marks = old.status == Status::Completed
        && write.record.as_ref().is_some_and(|new| new.owner == old.owner && new.outbox.is_none());
    if !takes_over && !marks && (old.status != Status::InProgress || old.owner != by) {
        world.blame(FENCED);
    }
    let Some(new) = &write.record else { return };
    if if takes_over { new.fence <= old.fence } else { new.fence != old.fence } {
        world.blame(FENCES_RISE);
    }
}
