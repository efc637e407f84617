//! Mistakes that the explorations have to find.

use std::{mem, sync::Arc};

use shuttle::thread::yield_now;

use super::{
    completed::{Completed, Entry},
    flights::{Boarding, Flights, Lead},
};
use crate::{clock::Timestamp, key::Key, protocol::Protocol, record::Record};

/// Frees the key and wakes nobody.
pub(crate) struct WakesNobody;

impl Protocol for WakesNobody {
    fn end(lead: Lead) {
        mem::forget(lead.flights.leave(&lead.key, lead.ticket));
    }
}

/// Wakes those who follow, and frees the key after that: who comes between is forgotten.
pub(crate) struct WakesTooEarly;

impl Protocol for WakesTooEarly {
    fn end(lead: Lead) {
        let landing = lead.flights.lock().flights.get_mut(&lead.key).and_then(|f| f.landing.take());
        drop(landing);
        mem::forget(lead.flights.leave(&lead.key, lead.ticket));
    }
}

/// Wakes the followers before they can be told.
pub(crate) struct TellsNobody;

impl Protocol for TellsNobody {
    fn end(mut lead: Lead) {
        lead.known = None;
    }
}

/// Looks whether the key is free and takes it, but not in one step.
pub(crate) struct LooksThenTakes;

impl Protocol for LooksThenTakes {
    fn board(flights: &Arc<Flights>, key: &Key, now: Timestamp, until: Timestamp) -> Boarding {
        let free = flights.lock().flights.get(key).is_none_or(|flight| now > flight.until);
        if !free {
            return flights.board(key, now, until);
        }
        let (ticket, outlived) = flights.lock().take(key, until);
        drop(outlived);
        let (flights, key) = (Arc::clone(flights), key.clone());
        Boarding::Leads(Lead { flights, key, ticket, known: None })
    }
}

/// Frees the key whoever has it by now.
pub(crate) struct FreesForOthers;

impl Protocol for FreesForOthers {
    fn end(lead: Lead) {
        drop(lead.flights.lock().flights.remove(&lead.key));
    }
}

/// Takes no notice of the end of the lease.
pub(crate) struct NeverLapses;

impl Protocol for NeverLapses {
    fn board(flights: &Arc<Flights>, key: &Key, _: Timestamp, until: Timestamp) -> Boarding {
        flights.board(key, Timestamp::EPOCH, until)
    }
}

/// Boards in place of a lead that has lapsed, and forgets those who follow it.
pub(crate) struct LeavesFollowersBehind;

impl Protocol for LeavesFollowersBehind {
    fn board(flights: &Arc<Flights>, key: &Key, now: Timestamp, until: Timestamp) -> Boarding {
        let mut aboard = flights.lock();
        if let Some(lapsed) = aboard.flights.get_mut(key).filter(|flight| now > flight.until) {
            mem::forget(lapsed.landing.take());
        }
        drop(aboard);
        flights.board(key, now, until)
    }
}

/// Frees the key when a record is settled, and only then.
pub(crate) struct StaysWhenCancelled;

impl Protocol for StaysWhenCancelled {
    fn cancel(lead: Lead) {
        mem::forget(lead);
    }
}

/// Keeps to the bounds, but not in the same step.
pub(crate) struct TrimsLater;

impl Protocol for TrimsLater {
    fn keep(completed: &Completed, key: &Key, record: &Arc<Record>, now: Timestamp) {
        completed.lock().add(key.clone(), Entry::new(key, record, now));
        yield_now();
        completed.lock().trim(&completed.bounds);
    }
}
