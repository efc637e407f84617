//! The host of a machine: tokens, the state that its process shares, and the stop of handlers.
//!
//! Sharing follows the documentation of `engine::process`: one invocation leads a key until its outcome,
//! or until its lead expires. Its followers then learn what the leader knew.
//! An invocation that asks for a place waits for the taken ones and for those asked for before it that
//! exclude it, as long as they count.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    outcome::DivertReason,
    record::{EntropyError, IdempotencyRecord, Json, Owner, Provenance, Status},
    store::StoreError,
};

use crate::{
    machine::{Enter, Host, Join, Side},
    setup::Setup,
    world::{Asked, Flight, Own, Step, World},
};

/// The surroundings of one machine.
pub(crate) struct Surroundings<'w> {
    pub(crate) setup: &'w Setup,
    pub(crate) world: &'w mut World,
    pub(crate) own: &'w mut Own,
}

impl Surroundings<'_> {
    /// The key of a record, and the place of its flight.
    fn flight(&mut self, at: usize) -> &mut Option<Flight> {
        let key = self.setup.messages[self.own.records[at]].key;
        &mut self.world.processes[self.own.process].flights[key]
    }

    fn own_flight(&mut self, at: usize) -> Option<&mut Flight> {
        let me = (self.own.number, at);
        self.flight(at).as_mut().filter(|flight| flight.leader == me)
    }
}

impl Host for Surroundings<'_> {
    fn owner(&mut self) -> Result<Owner, EntropyError> {
        Ok(self.own.token())
    }

    /// Nothing depends on it, so it is not part of the state.
    fn provenance(&self, _: usize, _: Timestamp) -> Option<Provenance> {
        None
    }

    fn pace(&self) -> Duration {
        self.setup.takes
    }

    fn took(&mut self, _: Duration) {}

    fn join(&mut self, at: usize, _: &Key, now: Timestamp, until: Timestamp) -> Join {
        let me = (self.own.number, at);
        let flight = self.flight(at);
        if let Some(flight) = flight.as_mut().filter(|flight| now <= flight.until) {
            if flight.leader == me {
                return Join::Leads;
            }
            flight.followers.push(me);
            let (until, holds) = (flight.until, flight.holds);
            self.setup.witness.saw("follower");
            return Join::Follows { until, holds };
        }
        let fresh = Flight { leader: me, until, holds: false, known: None, followers: Vec::new() };
        let outlived = flight.replace(fresh);
        if let Some(outlived) = outlived.filter(|flight| flight.leader != me) {
            for (number, at) in outlived.followers {
                self.world.finished.push((number, at, None));
            }
        }
        Join::Leads
    }

    fn holds(&mut self, at: usize) {
        if let Some(flight) = self.own_flight(at) {
            flight.holds = true;
            flight.known = None;
        }
    }

    fn returns(&mut self, at: usize) {
        if let Some(flight) = self.own_flight(at) {
            flight.holds = false;
        }
    }

    fn leave(&mut self, at: usize) {
        if self.own_flight(at).is_some()
            && let Some(flight) = self.flight(at).take()
        {
            for (number, at) in flight.followers {
                self.world.finished.push((number, at, flight.known.clone()));
            }
        }
    }

    fn learn(&mut self, at: usize, key: &Key, record: IdempotencyRecord, _: Timestamp) {
        let record = Arc::new(record);
        if record.status == Status::Completed && record.outbox.is_none() {
            let key = self.setup.key(key);
            self.world.processes[self.own.process].completed[key] = Some(Arc::clone(&record));
        }
        if let Some(flight) = self.own_flight(at) {
            flight.known = Some(record);
        }
    }

    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>> {
        let known = self.world.processes[self.own.process].completed[self.setup.key(key)].clone();
        known.filter(|record| now <= record.expires_at)
    }

    fn enter(
        &mut self,
        side: Side,
        until: Timestamp,
        patience: Timestamp,
        now: Timestamp,
    ) -> Enter {
        let number = self.own.number;
        self.world.may_enter.retain(|who| *who != number);
        let places = &mut self.world.processes[self.own.process].places;
        let mine = places.iter().position(|asked| asked.number == number);
        let at = mine.unwrap_or_else(|| {
            places.push(Asked { number, side, is_taken: false, until: patience });
            places.len() - 1
        });
        assert_eq!(places[at].side, side, "it exits before it asks for another");
        let both = (Side::Shared, Side::Shared);
        let blocking = places.iter().enumerate().filter(|(place, other)| {
            let is_before = *place != at && (other.is_taken || *place < at);
            is_before && (side, other.side) != both && now <= other.until
        });
        let blocked = blocking.map(|(_, other)| other.until).max();
        let blocked = blocked.filter(|_| !places[at].is_taken);
        places[at].is_taken = blocked.is_none();
        places[at].until = if blocked.is_none() { until } else { patience };
        self.setup.witness.saw(match (side, blocked) {
            (Side::Shared, None) => "shared place",
            (Side::Isolated, None) => "isolated place",
            (Side::Shared, Some(_)) => "wait for a shared place",
            (Side::Isolated, Some(_)) => "wait for isolation",
        });
        blocked.map_or(Enter::Entered, |until| Enter::Waits { until })
    }

    fn exit(&mut self) {
        exit(self.world, self.own.process, self.own.number);
    }

    fn put_aside(&mut self, _: usize, _: usize, _: DivertReason, _: Option<u64>) -> Option<Key> {
        None
    }

    fn renewed(&mut self, _: usize, _: Timestamp) {
        // Handlers of the model begin when they are started.
    }

    fn steps_stored(&mut self, at: usize, _: &Json) {
        if let Some(handler) = self.own.running.iter_mut().find(|handler| handler.at == at) {
            handler.step = Step::Stored;
            let key = self.setup.messages[self.own.records[at]].key;
            self.world.steps_relied_on[key] = true;
        }
    }

    fn steps_refused(&mut self, _: usize, _: &StoreError) {
        // The store of the model throttles, which is tried again.
    }

    fn withdraw(&mut self, _: usize) -> bool {
        // Handlers of the model begin when they are started.
        false
    }

    fn stop(&mut self, at: usize) -> Option<Timestamp> {
        let place = self.own.running.iter().position(|handler| handler.at == at)?;
        let handler = self.own.running.remove(place);
        self.setup.witness.saw("stopped handler");
        if let Some(held) = &handler.held {
            let key = self.setup.messages[self.own.records[at]].key;
            // The lease may have been renewed since.
            let stored = self.world.store[key].as_ref();
            let renewed = stored.filter(|record| record.owner == Some(held.claim.owner));
            let lease = renewed.unwrap_or(&held.record).lease_until.unwrap_or(Timestamp::EPOCH);
            let lingering = &mut self.world.lingering[key];
            *lingering = lease.max(*lingering);
        }
        Some(handler.since)
    }
}

/// An invocation gives its place up; those that wait for theirs are notified.
pub(crate) fn exit(world: &mut World, process: usize, number: u32) {
    let places = &mut world.processes[process].places;
    let all = places.len();
    places.retain(|asked| asked.number != number);
    if places.len() == all {
        return;
    }
    for asked in places.iter().filter(|asked| !asked.is_taken) {
        if !world.may_enter.contains(&asked.number) {
            world.may_enter.push(asked.number);
        }
    }
}
