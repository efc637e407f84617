//! Which keys are being worked on in this process, and by whom: one at a time.
//!
//! Before an invocation claims a key in the store, it *joins* the single flight of the key. If no other
//! invocation of the process has the key, it becomes the [`Leader`] and claims the key. Otherwise it
//! becomes a [`Follower`], which waits for the leader to end and then gets the record that the leader wrote
//! or found, if that is known. A follower that gets an answer needs no request. The other followers join
//! again, and one of them becomes the next leader.
//!
//! # A follower is never stranded
//!
//! A lead ends when it is dropped, and it is owned by the entry of its record, hence by the future of
//! its invocation: a delivery that is settled, a handler that panics, an invocation that is cancelled
//! or times out all end it. The key is freed before the followers are woken, so that a follower that
//! wakes up finds it free. A lead also ends with the lease of its claim. On Managed Instances a timed-out
//! invocation may run on; as in the store, an invocation that joins after that instant becomes the
//! leader, and the end of the old lead changes nothing any more.
//!
//! # Invocations never wait in a circle
//!
//! An invocation holds the lead of many keys at a time while records of it follow others. That is
//! no deadlock, for these reasons:
//!
//! * Joining never waits. A record whose key is held elsewhere waits *beside* the records of
//!   its batch, which go on being claimed, run and settled; it occupies no place among the running
//!   handlers, and the one that has to run alone gives its turn up.
//! * A record holds a lead only from its own claim to its own outcome, and only that of its own key. It
//!   holds none while it waits for its turn: behind another of its group or its key, for its
//!   invocation to be idle, or as a follower. So every leader waits for nothing but the store, its
//!   handler, a place among the handlers of its own invocation, and the clock, none of which waits for
//!   a follower.
//! * A handler may itself call the engine, so a leader can wait for a follower's result through user
//!   code, even for its own key. Every wait of a follower therefore ends by the clock: two seconds
//!   for queues, else what the policy allows, and always the invocation's deadline and the leader's
//!   lease.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use tokio::sync::watch;

use super::sync::{Mutex, MutexGuard};
use lambda_idempotency_core::{clock::Timestamp, record::IdempotencyRecord};
use lambda_idempotency_keys::Key;

/// The keys that are being worked on.
#[derive(Default)]
pub(crate) struct SingleFlight {
    leaders: Mutex<Leaders>,
}

#[derive(Default)]
pub(super) struct Leaders {
    pub(super) by_key: HashMap<Key, Flight>,
    last_ticket: u64,
}

/// What a leader's followers wait for. Dropping it wakes them.
pub(super) type Finished = watch::Sender<Option<Arc<IdempotencyRecord>>>;

pub(super) struct Flight {
    /// Distinguishes a flight from a later one of the same key.
    pub(super) ticket: u64,
    /// It counts up to and including this instant.
    pub(super) until: Timestamp,
    /// Whether the store has granted the leader's claim, and the leader may still complete it.
    pub(super) holds: bool,
    /// Made by the first follower.
    pub(super) finished: Option<Finished>,
}

/// The answer to joining.
pub(crate) enum Joined {
    /// The key is ours, in this process.
    Leader(Leader),
    /// Another invocation of this process has it.
    Follower(Follower),
}

impl SingleFlight {
    /// Asks for `key`, until it is settled, and at the latest up to and including `until`.
    pub(crate) fn join(self: &Arc<Self>, key: &Key, now: Timestamp, until: Timestamp) -> Joined {
        let mut leaders = self.lock();
        if let Some(flight) = leaders.by_key.get_mut(key)
            && now <= flight.until
        {
            let finished = flight.finished.get_or_insert_with(|| watch::Sender::new(None));
            let finished = finished.subscribe();
            let (until, holds) = (flight.until, flight.holds);
            return Joined::Follower(Follower { until, holds, finished });
        }
        let (ticket, outlived) = leaders.take(key, until);
        drop(leaders);
        // Its followers wake to follow the new lead.
        drop(outlived);
        Joined::Leader(Leader {
            single_flight: Arc::clone(self),
            key: key.clone(),
            ticket,
            known: None,
        })
    }

    /// Whether followers may rely on the claim of this ticket.
    fn set_holds(&self, key: &Key, ticket: u64, holds: bool) {
        let mut leaders = self.lock();
        let flight = leaders.by_key.get_mut(key).filter(|flight| flight.ticket == ticket);
        if let Some(flight) = flight {
            flight.holds = holds;
        }
    }

    /// Frees the key, if this ticket still has it; returns what the followers wait for.
    pub(super) fn leave(&self, key: &Key, ticket: u64) -> Option<Finished> {
        let mut leaders = self.lock();
        if leaders.by_key.get(key)?.ticket != ticket {
            return None;
        }
        leaders.by_key.remove(key)?.finished
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Leaders> {
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leaders {
    /// Gives the key to a new ticket; returns the flight that had it.
    pub(super) fn take(&mut self, key: &Key, until: Timestamp) -> (u64, Option<Flight>) {
        self.last_ticket = self.last_ticket.wrapping_add(1);
        let flight = Flight { ticket: self.last_ticket, until, holds: false, finished: None };
        (self.last_ticket, self.by_key.insert(key.clone(), flight))
    }
}

/// The right to work on a key in this process. It ends when it is dropped.
pub(crate) struct Leader {
    pub(super) single_flight: Arc<SingleFlight>,
    pub(super) key: Key,
    pub(super) ticket: u64,
    pub(super) known: Option<Arc<IdempotencyRecord>>,
}

impl Leader {
    /// Keeps the record that was last seen in the store, for the followers.
    pub(crate) fn learn(&mut self, record: Arc<IdempotencyRecord>) {
        self.known = Some(record);
    }
}

impl Leader {
    /// The store has granted the claim: followers may rely on it, for as long as the leader works. What was seen
    /// before the claim, or the claim itself, says nothing about the key once the leader has ended.
    pub(crate) fn holds(&mut self) {
        self.known = None;
        self.single_flight.set_holds(&self.key, self.ticket, true);
    }

    /// The record is returned to its source: followers must not rely on the claim any more.
    pub(crate) fn returns(&self) {
        self.single_flight.set_holds(&self.key, self.ticket, false);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let finished = self.single_flight.leave(&self.key, self.ticket);
        if let (Some(finished), Some(record)) = (finished, self.known.take()) {
            finished.send_replace(Some(record));
        }
    }
}

/// The wait for a leader.
pub(crate) struct Follower {
    until: Timestamp,
    holds: bool,
    finished: watch::Receiver<Option<Arc<IdempotencyRecord>>>,
}

impl Follower {
    /// Up to and including when the leader has the key at the latest.
    pub(crate) const fn until(&self) -> Timestamp {
        self.until
    }

    /// Whether the store had granted the leader's claim, and the leader might still complete it, when
    /// this was asked.
    pub(crate) const fn leader_holds(&self) -> bool {
        self.holds
    }

    /// Ends when the leader does, with what it knew of the key.
    pub(crate) async fn finished(mut self) -> Option<Arc<IdempotencyRecord>> {
        // An error means that the leader ended without a record.
        self.finished.changed().await.ok()?;
        self.finished.borrow().clone()
    }
}
