//! Mistakes that the explorations have to find.

use std::{mem, sync::Arc};

use shuttle::thread::yield_now;

use super::{
    completed::{Completed, Entry},
    single_flight::{Joined, Leader, SingleFlight},
};
use crate::{clock::Timestamp, key::Key, protocol::Protocol, record::IdempotencyRecord};

/// Frees the key and wakes no follower.
pub(crate) struct WakesNoFollower;

impl Protocol for WakesNoFollower {
    fn end(lead: Leader) {
        mem::forget(lead.single_flight.leave(&lead.key, lead.ticket));
    }
}

/// Wakes the followers before it frees the key: a follower that joins in between is never woken.
pub(crate) struct WakesTooEarly;

impl Protocol for WakesTooEarly {
    fn end(lead: Leader) {
        let finished =
            lead.single_flight.lock().by_key.get_mut(&lead.key).and_then(|f| f.finished.take());
        drop(finished);
        mem::forget(lead.single_flight.leave(&lead.key, lead.ticket));
    }
}

/// Ends without giving its record to the followers.
pub(crate) struct DropsTheRecord;

impl Protocol for DropsTheRecord {
    fn end(mut lead: Leader) {
        lead.known = None;
    }
}

/// Checks whether the key is free and takes it, but not in one step.
pub(crate) struct ChecksThenTakes;

impl Protocol for ChecksThenTakes {
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

/// Frees the key, also if another invocation leads it by now.
pub(crate) struct FreesAnothersLead;

impl Protocol for FreesAnothersLead {
    fn end(lead: Leader) {
        drop(lead.single_flight.lock().by_key.remove(&lead.key));
    }
}

/// Ignores the end of the lease.
pub(crate) struct NeverExpires;

impl Protocol for NeverExpires {
    fn join(
        single_flight: &Arc<SingleFlight>,
        key: &Key,
        _: Timestamp,
        until: Timestamp,
    ) -> Joined {
        single_flight.join(key, Timestamp::EPOCH, until)
    }
}

/// Takes over an expired lead, and forgets its followers.
pub(crate) struct ForgetsFollowers;

impl Protocol for ForgetsFollowers {
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

/// Frees the key only when a record is settled, and not when the invocation is cancelled.
pub(crate) struct StaysWhenCancelled;

impl Protocol for StaysWhenCancelled {
    fn cancel(lead: Leader) {
        mem::forget(lead);
    }
}

/// Adds an entry and trims the cache to its bounds in two steps.
pub(crate) struct TrimsLater;

impl Protocol for TrimsLater {
    fn keep(completed: &Completed, key: &Key, record: &Arc<IdempotencyRecord>, now: Timestamp) {
        completed.lock().add(key.clone(), Entry::new(key, record, now));
        yield_now();
        completed.lock().trim(&completed.bounds);
    }
}
