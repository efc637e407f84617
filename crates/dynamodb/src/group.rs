//! Writes of several calls in one request.
//!
//! Calls that a process makes at the same time, by concurrent invocations or by many calls of `run`, have a
//! write or a few each. While more than one call is on its way, they join a *group*, which is sent as soon
//! as a request may be sent: at once if there is room (see [`Slots`](crate::slots::Slots)). No timer holds
//! it back; what the program asks for in one turn of its executor goes together, and what comes while no
//! request may be sent. Completions do not wait for the end of that turn while there are few calls.
//!
//! Only the request is shared. Each call keeps its own deadline and its own limit for an attempt, repeats its own writes,
//! knows which of them are in doubt, and is charged for its share of what the request consumed. A call that is dropped
//! takes its writes out of a group that has not been sent.
//!
//! Nothing is spawned: whichever call is polled polls the request for all of them.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{Shared, WeakShared},
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    retry::Patience,
    store::Write,
    usage::{self, Usage},
};

use crate::{
    limits::{MOST_STATEMENT_BYTES, MOST_STATEMENTS},
    member::{Answer, Member},
    retry::Budget,
    slots::{MOST_REQUESTS, Purpose},
};

/// The groups of a store that can be joined.
#[derive(Default)]
pub(crate) struct Groups {
    /// The calls that are on their way.
    calls: AtomicUsize,
    claims: Mutex<Option<Open>>,
    settlements: Mutex<Option<Open>>,
}

/// A group, and what sends it as long as a call waits for it.
struct Open {
    group: Arc<Group>,
    sending: WeakShared<BoxFuture<'static, ()>>,
}

/// Writes that are sent together.
#[derive(Default)]
pub(crate) struct Group(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those that have not been taken out again.
    members: Vec<Option<Queued>>,
    bytes: usize,
    is_sent: bool,
    /// Until when its request gets an answer.
    sent: Option<Sent>,
    /// The answers that have not been fetched.
    answers: Vec<Option<Answer>>,
    /// The request had no answer in its time.
    took_too_long: bool,
    /// Whether a call wants to know what its writes consume.
    is_measured: bool,
    /// What the requests consumed that no call was charged for yet, and by how many writes.
    usage: Usage,
    uncharged: usize,
    /// A call that did not wait for the answer was charged for the request.
    is_charged: bool,
}

/// A write that waits to be sent.
pub(crate) struct Queued {
    pub(crate) write: Write,
    /// For how long its request may take.
    pub(crate) patience: Duration,
    pub(crate) call_deadline: Timestamp,
}

/// The request of a group.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) at: Timestamp,
    /// When it is given up: the latest time of all its calls.
    pub(crate) until: Timestamp,
    /// What [`Patience`] had learnt by then.
    pub(crate) learnt: Duration,
}

/// A call that is on its way.
pub(crate) struct Underway<'s>(&'s Groups);

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Groups {
    /// Another call begins.
    pub(crate) fn begin(&self) -> Underway<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Underway(self)
    }

    /// Whether these writes, which one request can hold, should share it with those of other calls.
    pub(crate) fn are_for(&self, members: &[Member<'_>]) -> bool {
        members.len() < MOST_STATEMENTS
            && self.calls.load(Ordering::Relaxed) > 1
            && !members.iter().any(Member::is_alone)
    }

    /// Whether there are more calls than requests that may be on their way.
    pub(crate) fn are_crowded(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > MOST_REQUESTS
    }

    /// Adds these writes to the group that is open, or to a new one, which `send` sends.
    pub(crate) fn join(
        &self,
        members: &[Member<'_>],
        budget: &Budget<'_>,
        purpose: Purpose,
        send: impl FnOnce(Arc<Group>) -> BoxFuture<'static, ()>,
    ) -> Ticket {
        let mut open = self.open(purpose);
        if let Some(Open { group, sending }) = &*open
            && let Some(sending) = sending.upgrade()
            && let Some(places) = group.add(members, budget)
        {
            return Ticket { group: Arc::clone(group), places, sending };
        }
        let group = Arc::new(Group::default());
        let places = group.add(members, budget).unwrap_or_default();
        let sending = send(Arc::clone(&group)).shared();
        let weak = sending.downgrade();
        *open = weak.map(|sending| Open { group: Arc::clone(&group), sending });
        Ticket { group, places, sending }
    }

    fn open(&self, purpose: Purpose) -> MutexGuard<'_, Option<Open>> {
        let open = match purpose {
            Purpose::Claim => &self.claims,
            Purpose::Settle => &self.settlements,
        };
        open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What a call is charged that has so many of the writes: their share of the units, and the requests if it is the first
    /// that is charged. So all calls together are charged for what the requests consumed.
    fn charge(&mut self, writes: usize) -> Usage {
        let requests = std::mem::take(&mut self.usage.requests);
        let share = writes as f64 / self.uncharged.max(writes).max(1) as f64;
        let capacity_units = self.usage.capacity_units * share;
        self.usage.capacity_units -= capacity_units;
        self.uncharged = self.uncharged.saturating_sub(writes);
        Usage { requests, capacity_units }
    }
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writes to be sent, each at its place. No call joins or leaves from now on.
    pub(crate) fn close(&self) -> Vec<Option<Queued>> {
        let mut state = self.lock();
        state.is_sent = true;
        std::mem::take(&mut state.members)
    }

    /// Its request begins.
    pub(crate) fn begin(&self, sent: Sent) {
        self.lock().sent = Some(sent);
    }

    /// Whether a call wants to know what its writes consume.
    pub(crate) fn is_measured(&self) -> bool {
        self.lock().is_measured
    }

    /// The answers, each with its place, whether they did not come in time, and what these writes consumed.
    pub(crate) fn answer(
        &self,
        answers: impl ExactSizeIterator<Item = (usize, Answer)>,
        took_too_long: bool,
        usage: Usage,
    ) {
        let mut state = self.lock();
        (state.took_too_long, state.usage, state.uncharged) = (took_too_long, usage, answers.len());
        state.usage.requests = usage.requests.saturating_sub(state.is_charged.into());
        for (place, answer) in answers {
            if place >= state.answers.len() {
                state.answers.resize_with(place.saturating_add(1), || None);
            }
            if let Some(at) = state.answers.get_mut(place) {
                *at = Some(answer);
            }
        }
    }

    /// Adds these writes if there is room and none of their keys is there already, and says where they are.
    fn add(&self, members: &[Member<'_>], budget: &Budget<'_>) -> Option<Range<usize>> {
        let mut state = self.lock();
        let is_there = |key: &Key| state.members.iter().flatten().any(|one| one.write.key == *key);
        if members.iter().any(|member| is_there(&member.write.key)) {
            return None;
        }
        let bytes = members.iter().fold(state.bytes, |sum, one| sum.saturating_add(one.size));
        let from = state.members.len();
        let to = from.saturating_add(members.len());
        if state.is_sent || to > MOST_STATEMENTS || (from > 0 && bytes > MOST_STATEMENT_BYTES) {
            return None;
        }
        state.bytes = bytes;
        if state.members.capacity() < to {
            // Twice as much, but never for more than a request has.
            let room = to.max(from.saturating_mul(2)).clamp(4, MOST_STATEMENTS);
            state.members.reserve_exact(room.saturating_sub(from));
        }
        state.is_measured |= usage::is_measured();
        let (patience, call_deadline) = (budget.patience(), budget.call_deadline());
        state.members.extend(
            members.iter().map(|member| {
                Some(Queued { write: member.write.clone(), patience, call_deadline })
            }),
        );
        Some(from..to)
    }
}

/// The writes of a call in a group. Dropped, it takes them out, unless they have been sent.
pub(crate) struct Ticket {
    group: Arc<Group>,
    places: Range<usize>,
    sending: Shared<BoxFuture<'static, ()>>,
}

impl Ticket {
    /// Ends when the group has its answers. Any of its calls that is polled carries it out.
    pub(crate) fn sending(&self) -> Shared<BoxFuture<'static, ()>> {
        self.sending.clone()
    }

    /// How long this call still waits for the request, which may go on for others; `None` if it has not begun.
    pub(crate) fn waits(&self, budget: &Budget<'_>, now: Timestamp) -> Option<Duration> {
        let Sent { at, until, learnt } = self.group.lock().sent?;
        let limit = Patience::limit(learnt, budget.patience(), budget.call_deadline().since(at));
        let own_end = at.plus(limit);
        // One that ends with the request gets the error of the request.
        let wait = if own_end < until { own_end.since(now) } else { Duration::MAX };
        Some(wait.min(budget.left()))
    }

    /// Takes the writes out. Says whether that was before they were sent. If not, charges the call for the request, unless
    /// another one was.
    pub(crate) fn give_up(&self) -> bool {
        let was_before = self.withdraw();
        let mut state = self.group.lock();
        let is_unanswered = !was_before && state.answers.is_empty();
        if is_unanswered && usage::is_measured() && !state.is_charged {
            state.is_charged = true;
            usage::add(Usage { requests: 1, capacity_units: 0.0 });
        }
        was_before
    }

    fn withdraw(&self) -> bool {
        let mut state = self.group.lock();
        if !state.is_sent {
            for member in state.members.get_mut(self.places.clone()).unwrap_or_default() {
                *member = None;
            }
        }
        !state.is_sent
    }

    /// The answers, and whether they did not come in time. Charges the call for its writes.
    pub(crate) fn fetch(&self, missing: &Answer) -> (Vec<Answer>, bool) {
        let mut state = self.group.lock();
        if usage::is_measured() {
            usage::add(state.charge(self.places.len()));
        }
        let mut answer = |place: usize| state.answers.get_mut(place).and_then(Option::take);
        let answers = self
            .places
            .clone()
            .map(|place| answer(place).unwrap_or_else(|| missing.clone()))
            .collect();
        (answers, state.took_too_long)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.withdraw();
    }
}
