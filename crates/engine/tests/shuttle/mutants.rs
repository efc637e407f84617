//! Mistakes that the explorations have to find.

use std::{mem, sync::Arc};

use shuttle::thread::yield_now;

use super::{
    completed::{Completed, Entry},
    single_flight::{Joined, Leader, SingleFlight},
};
use crate::{clock::Timestamp, key::Key, protocol::Protocol, record::IdempotencyRecord};

/// Frees the key and wakes nobody.
pub(crate) struct WakesNobody;

impl Protocol for WakesNobody {
    fn end(lead: Leader) {
        mem::forget(lead.single_flight.leave(&lead.key, lead.ticket));
    }
}

/// Wakes those who follow, and frees the key after that: who comes between is forgotten.
pub(crate) struct WakesTooEarly;

impl Protocol for WakesTooEarly {
    fn end(lead: Leader) {
        let finished =
            lead.single_flight.lock().by_key.get_mut(&lead.key).and_then(|f| f.finished.take());
        drop(finished);
        mem::forget(lead.single_flight.leave(&lead.key, lead.ticket));
    }
}

/// Wakes the followers before they can be told.
pub(crate) struct TellsNobody;

impl Protocol for TellsNobody {
    fn end(mut lead: Leader) {
        lead.known = None;
    }
}

/// FieldSets whether the key is free and takes it, but not in one step.
pub(crate) struct LooksThenTakes;

impl Protocol for LooksThenTakes {
    fn join(
        single_flight: &Arc<SingleFlight>,
        key: &Key,
        now: Timestamp,
        until: Timestamp,
    ) -> Joined {
        let free = single_flight.lock().by_key.get(key).is_none_or(|flight| now > flight.until);
        if !free {
            return single_flight.join(key, now, until);
        }
        let (ticket, outlived) = single_flight.lock().take(key, until);
        drop(outlived);
        let (single_flight, key) = (Arc::clone(single_flight), key.clone());
        Joined::Leader(Leader { single_flight, key, ticket, known: None })
    }
}

/// Frees the key whoever has it by now.
pub(crate) struct FreesForOthers;

impl Protocol for FreesForOthers {
    fn end(lead: Leader) {
        drop(lead.single_flight.lock().by_key.remove(&lead.key));
    }
}

/// Takes no notice of the end of the lease.
pub(crate) struct NeverLapses;

impl Protocol for NeverLapses {
    fn join(
        single_flight: &Arc<SingleFlight>,
        key: &Key,
        _: Timestamp,
        until: Timestamp,
    ) -> Joined {
        single_flight.join(key, Timestamp::EPOCH, until)
    }
}

/// Boards in place of a lead that has lapsed, and forgets those who follow it.
pub(crate) struct LeavesFollowersBehind;

impl Protocol for LeavesFollowersBehind {
    fn join(
        single_flight: &Arc<SingleFlight>,
        key: &Key,
        now: Timestamp,
        until: Timestamp,
    ) -> Joined {
        let mut leaders = single_flight.lock();
        if let Some(lapsed) = leaders.by_key.get_mut(key).filter(|flight| now > flight.until) {
            mem::forget(lapsed.finished.take());
        }
        drop(leaders);
        single_flight.join(key, now, until)
    }
}

/// Frees the key when a record is settled, and only then.
pub(crate) struct StaysWhenCancelled;

impl Protocol for StaysWhenCancelled {
    fn cancel(lead: Leader) {
        mem::forget(lead);
    }
}

/// Keeps to the bounds, but not in the same step.
pub(crate) struct TrimsLater;

impl Protocol for TrimsLater {
    fn keep(completed: &Completed, key: &Key, record: &Arc<IdempotencyRecord>, now: Timestamp) {
        completed.lock().add(key.clone(), Entry::new(key, record, now));
        yield_now();
        completed.lock().trim(&completed.bounds);
    }
}
