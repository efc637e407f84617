//! The properties that must hold in every state.

use lambda_idempotency_core::admission::{Admission, admit};
use stateright::Property;

use crate::{
    explorer::Explorer,
    packed::{Cell, at},
    setup::{SKEW, Setup},
    state::{KeyWorld, World},
    step::claim,
};

/// At most one worker believes, by its own clock, that it holds a key.
pub(crate) const ONE_OWNER: &str = "I1 one owner";
/// A worker that believes that it holds a key owns the record, with a lease at least as long as it
/// believes.
pub(crate) const BELIEF_IS_TRUE: &str = "I1 a believed lease is real";
/// A handler starts only while its worker owns the record.
pub(crate) const STARTS_AS_OWNER: &str = "I1 only the owner starts";
/// A worker that lost its lease changes nothing.
pub(crate) const FENCED: &str = "I2 fenced";
/// A settled record does not change until it expires.
pub(crate) const FINAL: &str = "I3 completed is final";
/// A delivery is acknowledged only if its key was completed, or its own completion was lost.
pub(crate) const ACKNOWLEDGED_LAST: &str = "I4 acknowledged after completion";
/// Each delivery is with its source, with a worker, or acknowledged after an effect.
pub(crate) const NOTHING_LOST: &str = "I4 nothing is lost";
/// Whatever the store holds, a later claim is granted or answered.
pub(crate) const NEVER_STUCK: &str = "I4 never locked permanently";
/// A worker that finds its own write counts it as applied.
pub(crate) const OWN_WORK_KNOWN: &str = "I7 own work is recognised";
/// No worker is told that it was overtaken while the record is in progress and it is the owner.
pub(crate) const NOT_MISLED: &str = "I7 an owner is not told it was overtaken";
/// While a record is in progress it expires no earlier than its lease.
pub(crate) const EXPIRES_AFTER_LEASE: &str = "I9 expires after the lease";
/// A sweep by a clock within the clock skew never frees a key whose owner believes that it holds it.
pub(crate) const SWEEP_SPARES_HOLDERS: &str = "I9 a sweep keeps held records";
/// The counts of failed and lost attempts are kept until the key is settled.
pub(crate) const COUNTS_KEPT: &str = "attempt counts are kept";

/// A handler is stopped before the next one can start.
pub(crate) const ONE_AT_A_TIME: &str = "I1 one handler at a time";
/// While a record lives, each claim has a higher fence than the one before; settlements keep it.
pub(crate) const FENCES_RISE: &str = "fences rise while the record lives";
/// Each handler has a higher fence than the one before, also if the record was removed in between.
pub(crate) const FENCES_OUTLIVE: &str = "fences rise after a record is removed";
/// A worker that has waited until the given instant finds the key free, or changed by another worker.
pub(crate) const WAITING_ENDS: &str = "waiting ends at the given instant";
/// No delivery is acknowledged because its key was completed with another payload.
pub(crate) const OWN_ANSWER: &str = "I6 no answer from another payload";
/// No record in progress counts more failed attempts than handlers have reported.
pub(crate) const FAILURES_ARE_REAL: &str = "only failures count as failed attempts";
/// No handler starts while the effect of a dropped one may still happen.
pub(crate) const DROPPED_COUNTS: &str = "no handler starts beside a dropped one";
/// Neither workers nor Powertools change a settled record before it expires.
pub(crate) const NOT_OVERWRITTEN: &str = "settled records are not overwritten";

flaws! {
    StartedWithoutKey: STARTS_AS_OWNER,
    NotFenced: FENCED,
    NotFinal: FINAL,
    AcknowledgedTooSoon: ACKNOWLEDGED_LAST,
    OwnWorkNotRecognised: OWN_WORK_KNOWN,
    ToldOvertakenWhileOwner: NOT_MISLED,
    SweptUnderHolder: SWEEP_SPARES_HOLDERS,
    CountsLost: COUNTS_KEPT,
    FenceFell: FENCES_RISE,
    FenceFellAfterRemoval: FENCES_OUTLIVE,
    AnsweredByAnother: OWN_ANSWER,
    WaitedInVain: WAITING_ENDS,
    StartedBesideDropped: DROPPED_COUNTS,
    OverwrittenByStranger: NOT_OVERWRITTEN,
}

/// The properties of a configuration.
pub(crate) fn of(setup: &Setup) -> Vec<Property<Explorer>> {
    let mut properties = without_flaws();
    properties.extend([
        Property::always(ONE_OWNER, |_, w: &World| owners(&w.key, w.time) <= 1),
        Property::always(ONE_AT_A_TIME, |m: &Explorer, w: &World| {
            !m.setup.stops || running(&w.key) <= 1
        }),
        Property::always(BELIEF_IS_TRUE, |_, w: &World| belief_is_true(&w.key, w.time)),
        Property::always(NOTHING_LOST, |m: &Explorer, w: &World| nothing_is_lost(&w.key, &m.setup)),
        Property::always(NEVER_STUCK, |m: &Explorer, w: &World| {
            never_stuck(&w.key, w.time, &m.setup)
        }),
        Property::always(EXPIRES_AFTER_LEASE, |_, w: &World| {
            w.key.store.is_none_or(expires_after_lease)
        }),
        Property::always(FAILURES_ARE_REAL, |m: &Explorer, w: &World| {
            failures_are_real(w, &m.setup)
        }),
    ]);
    properties.retain(|property| !setup.lost.contains(&property.name));
    properties
}

fn owners(key: &KeyWorld, time: u8) -> usize {
    key.believers(time).count() + key.believing_strangers(time).count()
}

fn running(key: &KeyWorld) -> usize {
    key.working().filter(|call| call.runs()).count()
}

fn belief_is_true(key: &KeyWorld, time: u8) -> bool {
    key.believers(time).all(|call| {
        key.store.is_some_and(|record| {
            record.in_progress()
                && record.owner() == call.token
                && record.lease() >= call.held.lease()
        })
    })
}

fn nothing_is_lost(key: &KeyWorld, setup: &Setup) -> bool {
    let source = key.source;
    let in_flight = key.working().count() + key.strangers.iter().flatten().count();
    let [ours, others] = source.queued;
    let all =
        usize::from(ours + others + source.acknowledged + source.failed_permanently) + in_flight;
    all == usize::from(setup.deliveries + setup.others)
        && (source.acknowledged == 0 || key.effect.any())
}

fn failures_are_real(world: &World, setup: &Setup) -> bool {
    // A worker that releases after a completion reports a failure that no handler reported.
    let reported = setup.faults.errors - world.faults.errors;
    let unsettled = world.key.store.filter(|record| record.in_progress());
    setup.regret || unsettled.map_or(0, Cell::failed_attempts) <= reported
}

fn never_stuck(key: &KeyWorld, time: u8, setup: &Setup) -> bool {
    // No lease was computed from a clock that is ahead of the true time by more than the clock skew.
    let longest = setup.lease.max(setup.renewal);
    let later = time + SKEW + longest + SKEW + 1;
    let record = key.store.map(Cell::unpack);
    let probe = claim(setup, u8::MAX, later + setup.lease, 0);
    !matches!(admit(&probe, record.as_ref(), at(later)), Admission::Busy { .. })
}

fn expires_after_lease(record: Cell) -> bool {
    !record.in_progress() || record.expires() >= record.lease()
}
