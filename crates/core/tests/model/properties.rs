//! What must hold in every state, whatever happens.

use lambda_idempotency_core::admission::{Admission, admit};
use stateright::Property;

use crate::{
    explorer::Explorer,
    packed::{Cell, at},
    protocol::Protocol,
    setup::{SKEW, Setup},
    state::{Flaw, KeyWorld, World},
    step::Step,
};

/// At most one worker believes, by its own clock, that it holds a key.
pub(crate) const ONE_OWNER: &str = "I1 one owner";
/// Who believes that it holds a key has the record, with a lease no shorter than it believes.
pub(crate) const BELIEF_IS_TRUE: &str = "I1 belief is true";
/// A handler is started only while its worker has the record.
pub(crate) const STARTS_AS_OWNER: &str = "I1 who starts has the key";
/// Who lost the lease changes nothing.
pub(crate) const FENCED: &str = "I2 fenced";
/// What is settled stays as it is until it expires.
pub(crate) const FINAL: &str = "I3 completed is final";
/// A delivery is acknowledged only if its key was completed, or its own completion was lost.
pub(crate) const ACKNOWLEDGED_LAST: &str = "I4 acknowledged last";
/// Each delivery is with its source, with a worker, or acknowledged after an effect.
pub(crate) const NOTHING_LOST: &str = "I4 nothing is lost";
/// Whatever is in the store, some time later a claim is let through or answered.
pub(crate) const NEVER_STUCK: &str = "I4 never locked for good";
/// A worker that finds its own work counts it as done.
pub(crate) const OWN_WORK_KNOWN: &str = "I7 own work is recognised";
/// No worker is told that it was overtaken while the record is in progress and its own.
pub(crate) const NOT_MISLED: &str = "I7 an owner is not told it was overtaken";
/// While a record is in progress it expires no earlier than its lease.
pub(crate) const EXPIRES_AFTER_LEASE: &str = "I9 expires after the lease";
/// A sweep by a clock within the allowance never frees a key whose holder still believes.
pub(crate) const SWEEP_SPARES_HOLDERS: &str = "I9 sweep spares holders";
/// Failures reported and owners vanished are carried on until the key is settled.
pub(crate) const HISTORY_KEPT: &str = "history is kept";

/// All of them.
pub(crate) fn all<P: Protocol>() -> Vec<Property<Explorer<P>>> {
    vec![
        Property::always(ONE_OWNER, |_, w: &World| {
            w.keys.iter().all(|key| key.believers(w.time).count() <= 1)
        }),
        Property::always(BELIEF_IS_TRUE, |_, w: &World| {
            w.keys.iter().all(|key| belief_is_true(key, w.time))
        }),
        Property::always(STARTS_AS_OWNER, |_, w: &World| free_of(Flaw::StartedWithoutKey, w)),
        Property::always(FENCED, |_, w: &World| free_of(Flaw::NotFenced, w)),
        Property::always(FINAL, |_, w: &World| free_of(Flaw::NotFinal, w)),
        Property::always(ACKNOWLEDGED_LAST, |_, w: &World| free_of(Flaw::AcknowledgedTooSoon, w)),
        Property::always(NOTHING_LOST, |m: &Explorer<P>, w: &World| {
            w.keys.iter().all(|key| nothing_is_lost(key, &m.setup))
        }),
        Property::always(NEVER_STUCK, |m: &Explorer<P>, w: &World| {
            w.keys.iter().all(|key| never_stuck::<P>(key, w.time, &m.setup))
        }),
        Property::always(OWN_WORK_KNOWN, |_, w: &World| free_of(Flaw::OwnWorkNotRecognised, w)),
        Property::always(NOT_MISLED, |_, w: &World| free_of(Flaw::ToldOvertakenWhileOwner, w)),
        Property::always(EXPIRES_AFTER_LEASE, |_, w: &World| {
            w.keys.iter().filter_map(|key| key.store).all(expires_after_lease)
        }),
        Property::always(SWEEP_SPARES_HOLDERS, |_, w: &World| free_of(Flaw::SweptUnderHolder, w)),
        Property::always(HISTORY_KEPT, |_, w: &World| free_of(Flaw::HistoryLost, w)),
    ]
}

fn free_of(flaw: Flaw, world: &World) -> bool {
    !world.keys.iter().any(|key| key.flaws.contains(flaw))
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
    let in_flight = key.working().count();
    let all = usize::from(source.queued + source.acknowledged + source.parked) + in_flight;
    all == usize::from(setup.deliveries) && (source.acknowledged == 0 || key.effect)
}

fn never_stuck<P: Protocol>(key: &KeyWorld, time: u8, setup: &Setup) -> bool {
    // Any lease was asked for by now, with a clock that was ahead by no more than the allowance.
    let longest = setup.lease.max(setup.renewal);
    let later = time + SKEW + longest + SKEW + 1;
    let mut key = key.clone();
    let record = key.store.map(Cell::unpack);
    let probe = Step::<P>::new(setup, time, &mut key).claim(u8::MAX, later + setup.lease);
    !matches!(admit(&probe, record.as_ref(), at(later)), Admission::Busy { .. })
}

fn expires_after_lease(record: Cell) -> bool {
    !record.in_progress() || record.expires() >= record.lease()
}
