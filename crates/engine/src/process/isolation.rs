//! Which invocations of this process may have something claimed or running at the same time.
//!
//! A record that kills its process takes all invocations of the process with it. So an invocation has
//! a [`Place`] among those of its process while it has claims or runs handlers: usually a *shared* one, and an
//! *isolated* one for a record that has lost its process several times in a row. While one is
//! isolated, the others have nothing that could be lost.
//!
//! # The order
//!
//! An invocation that asks for isolation waits for all that asked for a place before it, and all that ask
//! later wait for it. Places are therefore taken in the order in which they were asked for: new
//! invocations cannot keep one from isolation for ever, nor can isolated ones keep out the others.
//!
//! # Every wait ends
//!
//! * A place is given up when it is dropped, and it is owned by the future of its invocation.
//! * A place counts up to an instant: while it is waited for, until the invocation gives up waiting;
//!   once it is taken, until the last lease of the invocation ends. On Managed Instances an invocation
//!   that has timed out may run on; after that instant it does not hold up the others any more. The
//!   waiting ones set a timer for it and look again then.
//! * An invocation has one place at most, so it never has one while it waits for another.
//!
//! An invocation that need not wait takes its place in one step, without an allocation.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, PoisonError},
    task::{Context, Poll, Waker},
};

use super::sync::{Mutex, MutexGuard};
use lambda_idempotency_core::clock::Timestamp;

/// The places of the invocations of one process.
#[derive(Default)]
pub(crate) struct Isolation {
    places: Mutex<Places>,
}

#[derive(Default)]
pub(super) struct Places {
    /// In the order in which they were asked for.
    pub(super) all: VecDeque<Asked>,
    /// How many of them are isolated. While none is, nobody waits, however many invocations there are.
    isolated: usize,
    last_ticket: u64,
}

/// A place that was asked for.
pub(super) struct Asked {
    pub(super) ticket: u64,
    pub(super) is_isolated: bool,
    pub(super) is_taken: bool,
    /// It counts up to and including this instant.
    pub(super) until: Timestamp,
    /// Whether another one was given up since it was last asked for.
    changed: bool,
    waker: Option<Waker>,
}

/// Until when a place counts.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    /// Once it is taken, included.
    pub(crate) taken: Timestamp,
    /// While it is waited for, included.
    pub(crate) waiting: Timestamp,
}

impl Places {
    fn find(&mut self, ticket: u64) -> Option<(usize, &mut Asked)> {
        // From the back: most are looked for just after they were asked for.
        self.all.iter_mut().enumerate().rfind(|(_, asked)| asked.ticket == ticket)
    }

    /// Takes a place, or says up to and including when others keep it from being taken.
    fn take(&mut self, ticket: u64, until: Until, now: Timestamp) -> Result<(), Timestamp> {
        let Some((at, asked)) = self.find(ticket) else { return Ok(()) };
        let (is_isolated, is_taken) = (asked.is_isolated, asked.is_taken);
        let blocked = self.blocked(at, is_isolated, now).filter(|_| !is_taken);
        if let Some((_, asked)) = self.find(ticket) {
            asked.changed = false;
            asked.is_taken = blocked.is_none();
            asked.until = if asked.is_taken { until.taken } else { until.waiting };
        }
        blocked.map_or(Ok(()), Err)
    }

    /// Up to and including when others keep this place from being taken, if they do.
    fn blocked(&self, at: usize, is_isolated: bool, now: Timestamp) -> Option<Timestamp> {
        if !is_isolated && self.isolated == 0 {
            return None;
        }
        let blocking = self.all.iter().enumerate().filter(|(place, other)| {
            let is_before = *place != at && (other.is_taken || *place < at);
            is_before && (is_isolated || other.is_isolated) && now <= other.until
        });
        blocking.map(|(_, other)| other.until).max()
    }

    /// Gives a place up. Returns the wakers of the invocations that wait for a place.
    pub(super) fn leave(&mut self, ticket: u64) -> Vec<Waker> {
        let nobody_waits = self.isolated == 0;
        let left = self.all.iter().position(|asked| asked.ticket == ticket);
        let left = left.and_then(|place| self.all.remove(place));
        let was_isolated = left.is_some_and(|asked| asked.is_isolated);
        self.isolated = self.isolated.saturating_sub(usize::from(was_isolated));
        if nobody_waits {
            return Vec::new();
        }
        let waiting = self.all.iter_mut().filter(|asked| !asked.is_taken);
        let wakers = waiting.filter_map(|asked| {
            asked.changed = true;
            asked.waker.take()
        });
        wakers.collect()
    }
}

impl Isolation {
    /// Asks for a place, and takes it if it is free. Else says up to and including when it is not,
    /// as far as is known.
    pub(crate) fn ask(
        self: &Arc<Self>,
        is_isolated: bool,
        until: Until,
        now: Timestamp,
    ) -> (Place, Result<(), Timestamp>) {
        let mut places = self.lock();
        places.last_ticket = places.last_ticket.wrapping_add(1);
        let ticket = places.last_ticket;
        places.isolated += usize::from(is_isolated);
        places.all.push_back(Asked {
            ticket,
            is_isolated,
            is_taken: false,
            until: until.waiting,
            changed: false,
            waker: None,
        });
        let taken = places.take(ticket, until, now);
        drop(places);
        (Place { isolation: Arc::clone(self), ticket, is_isolated }, taken)
    }

    /// How many places are taken or waited for.
    #[cfg(test)]
    pub(crate) fn extent(&self) -> usize {
        self.lock().all.len()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one invocation, taken or waited for. It is given up when it is dropped.
pub(crate) struct Place {
    pub(super) isolation: Arc<Isolation>,
    pub(super) ticket: u64,
    is_isolated: bool,
}

impl Place {
    pub(crate) const fn is_isolated(&self) -> bool {
        self.is_isolated
    }

    /// Asks once more, as [`Isolation::ask`] does. A place that is taken stays so, with another end.
    pub(crate) fn ask(&self, until: Until, now: Timestamp) -> Result<(), Timestamp> {
        self.isolation.lock().take(self.ticket, until, now)
    }

    /// Ends when another place was given up, if this one is waited for.
    pub(crate) fn poll_changed(&self, context: &Context<'_>) -> Poll<()> {
        let mut places = self.isolation.lock();
        let Some((_, asked)) = places.find(self.ticket) else { return Poll::Pending };
        if asked.is_taken {
            return Poll::Pending;
        }
        if mem::take(&mut asked.changed) {
            return Poll::Ready(());
        }
        asked.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let wakers = self.isolation.lock().leave(self.ticket);
        wakers.into_iter().for_each(Waker::wake);
    }
}
