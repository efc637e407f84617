//! Writes of several calls in one request.
//!
//! Calls that a process makes at the same time, by concurrent invocations or by many calls of `run`, have a
//! write or a few each. While more than one call is on its way, they join a *group*, which is sent as soon
//! as a request may be sent: at once if there is room (see [`Slots`](crate::slots::Slots)). No timer holds
//! it back; what the program asks for in one turn of its executor goes together, and what comes while no
//! request may be sent.
//!
//! Only the request is shared. Each call keeps its own deadline, repeats its own writes and knows which of
//! them are in doubt. A call that is dropped takes its writes out of a group that has not been sent.
//!
//! Nothing is spawned: whichever call is polled polls the request for all of them.

use std::{
    future::{Future, poll_fn},
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{Either, Shared, WeakShared, select},
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    store::Write,
};

use crate::{
    batch::{MOST, MOST_BYTES},
    error::Failure,
    member::{Answer, Member},
    retry::Budget,
    slots::Purpose,
    store::DynamoDbStore,
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
struct Group(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those that have not been taken out again.
    members: Vec<Option<Queued>>,
    bytes: usize,
    is_sent: bool,
    /// The answers that have not been fetched.
    answers: Vec<Option<Answer>>,
    /// For how long a next request may take, if this one took too long.
    patience: Duration,
}

/// A write that waits to be sent.
struct Queued {
    write: Write,
    patience: Duration,
    call_deadline: Timestamp,
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
        members.len() < MOST
            && self.calls.load(Ordering::Relaxed) > 1
            && !members.iter().any(Member::is_alone)
    }

    fn open(&self, purpose: Purpose) -> MutexGuard<'_, Option<Open>> {
        let open = match purpose {
            Purpose::Claim => &self.claims,
            Purpose::Settle => &self.settlements,
        };
        open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        if state.is_sent || to > MOST || (from > 0 && bytes > MOST_BYTES) {
            return None;
        }
        state.bytes = bytes;
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
struct Ticket {
    group: Arc<Group>,
    places: Range<usize>,
    sending: Shared<BoxFuture<'static, ()>>,
}

impl Ticket {
    /// Takes the writes out. Says whether that was before they were sent.
    fn withdraw(&self) -> bool {
        let mut state = self.group.lock();
        if !state.is_sent {
            for member in state.members.get_mut(self.places.clone()).unwrap_or_default() {
                *member = None;
            }
        }
        !state.is_sent
    }

    /// The answers, and for how long a next request may take.
    fn fetch(&self, missing: &Answer) -> (Vec<Answer>, Duration) {
        let mut state = self.group.lock();
        let mut answer = |place: usize| state.answers.get_mut(place).and_then(Option::take);
        let answers = self
            .places
            .clone()
            .map(|place| answer(place).unwrap_or_else(|| missing.clone()))
            .collect();
        (answers, state.patience)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl DynamoDbStore {
    /// Sends these writes in a request with those of other calls; answers in order.
    pub(crate) async fn write_in_group(
        &self,
        members: &[Member<'_>],
        budget: &Budget<'_>,
    ) -> Vec<Answer> {
        let ticket = self.join(members, budget);
        // The other calls of this turn can join before the first of them is polled again.
        next_turn().await;
        let too_late = self.config.clock.sleep(budget.left());
        match select(ticket.sending.clone(), too_late).await {
            Either::Left(((), _)) => {
                let missing = Answer::Failed(Failure::unanswered_in_group(&self.config));
                let (answers, patience) = ticket.fetch(&missing);
                budget.be_patient(patience);
                answers
            }
            Either::Right(((), _)) => {
                let failure = match ticket.withdraw() {
                    true => Failure::too_late(&self.config),
                    false => Failure::unanswered_in_group(&self.config),
                };
                vec![Answer::Failed(failure); members.len()]
            }
        }
    }

    fn join(&self, members: &[Member<'_>], budget: &Budget<'_>) -> Ticket {
        let is_claim = members.iter().all(Member::is_claim);
        let purpose = if is_claim { Purpose::Claim } else { Purpose::Settle };
        let mut open = self.groups.open(purpose);
        if let Some(Open { group, sending }) = &*open
            && let Some(sending) = sending.upgrade()
            && let Some(places) = group.add(members, budget)
        {
            return Ticket { group: Arc::clone(group), places, sending };
        }
        let group = Arc::new(Group::default());
        let places = group.add(members, budget).unwrap_or_default();
        let sending: BoxFuture<'static, ()> =
            Box::pin(send(self.clone(), Arc::clone(&group), purpose));
        let sending = sending.shared();
        *open = sending.downgrade().map(|sending| Open { group: Arc::clone(&group), sending });
        Ticket { group, places, sending }
    }
}

/// Sends a group when a request may be sent.
async fn send(store: DynamoDbStore, group: Arc<Group>, purpose: Purpose) {
    let config = &*store.config;
    let _slot = store.slots.enter(purpose, &*config.clock).await;
    let queued = {
        let mut state = group.lock();
        state.is_sent = true;
        std::mem::take(&mut state.members)
    };
    let sent: Vec<(usize, &Queued)> =
        queued.iter().enumerate().filter_map(|(at, one)| Some((at, one.as_ref()?))).collect();
    let deadline = sent.iter().map(|(_, one)| one.call_deadline).max().unwrap_or_default();
    let budget = Budget::new(config, deadline);
    budget.be_patient(sent.iter().map(|(_, one)| one.patience).max().unwrap_or_default());
    // Each was one of a call before, so none has a verdict already.
    let members: Vec<Member<'_>> =
        sent.iter().filter_map(|(at, one)| Member::new(config, *at, &one.write).ok()).collect();
    let answers = match &*members {
        [] => vec![],
        [member] => vec![store.write_one(member, &budget).await],
        members => store.write_batch(members, &budget).await,
    };
    let mut state = group.lock();
    state.patience = budget.patience();
    state.answers.resize_with(queued.len(), || None);
    for (member, answer) in members.iter().zip(answers) {
        if let Some(place) = state.answers.get_mut(member.index) {
            *place = Some(answer);
        }
    }
}

/// Ends when its task is polled again, which is as soon as all others that are ready have been polled.
fn next_turn() -> impl Future<Output = ()> {
    let mut is_next = false;
    poll_fn(move |context| {
        if is_next {
            return Poll::Ready(());
        }
        is_next = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
}
