//! One batch on its way: what is claimed, runs, settles and waits, and what happens next.

use std::{
    cmp::Reverse,
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Poll},
};

use futures_util::{StreamExt as _, future::Aborted, stream::FuturesUnordered};

use super::{
    AfterFailure, Batch, Engine, Pace,
    asleep::Asleep,
    budget::Budget,
    calls::Answered,
    claims::Answer,
    entry::Entry,
    handler::{Ended, Handler},
    heartbeat::{Beat, Heartbeat},
    plan::Plan,
    settles::{Settle, Settles},
    sharing::Landed,
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    outcome::{NotStarted, Outcome},
    policy::Policy,
};

/// A batch in progress. Here is the loop; what each event means stands in the files that say so:
/// `launch` (what begins), `granted` (what a claim was answered), `settling`, `turns` (an outcome,
/// and who goes next), `diverting` and `ending`.
pub(super) struct Drive<'a> {
    pub(super) engine: &'a Engine,
    pub(super) operation: &'a str,
    pub(super) policy: &'a Policy,
    pub(super) pace: &'a Pace,
    pub(super) budget: Budget,
    pub(super) entries: Vec<Entry<'a>>,
    /// How many of them have no outcome yet.
    pub(super) open: usize,
    pub(super) plan: Plan,
    /// First of their key and group, and without a claim yet.
    pub(super) to_claim: VecDeque<usize>,
    /// May start.
    pub(super) ready: VecDeque<usize>,
    /// Their last owner disappeared: they run last, each alone.
    pub(super) suspects: VecDeque<usize>,
    /// Busy elsewhere; to be looked at again.
    pub(super) asleep: Asleep,
    pub(super) settles: Settles,
    pub(super) claiming: FuturesUnordered<BoxFuture<'static, Vec<Answer>>>,
    /// How many keys are in `claiming`.
    pub(super) claims: usize,
    /// Other invocations of this process that have the key of one that is asleep.
    pub(super) following: FuturesUnordered<BoxFuture<'static, Landed>>,
    pub(super) running: FuturesUnordered<Handler<'a>>,
    pub(super) heartbeat: Heartbeat,
    timer: Option<(Timestamp, BoxFuture<'static, ()>)>,
    /// The suspect that is being claimed or runs.
    pub(super) alone: Option<usize>,
    /// How many handlers were let go and, as far as is known, begun.
    pub(super) starts: usize,
    pub(super) after_failure: AfterFailure,
    /// Why nothing is started any more, once that is so.
    pub(super) closed: Option<NotStarted>,
    /// The time for handlers is over.
    pub(super) stopped: bool,
}

enum Event {
    Ended((usize, Result<Ended, Aborted>)),
    Renewed(Vec<Answered<Beat>>),
    Claimed(Vec<Answer>),
    Landed(Landed),
    Settled(Vec<Answered<Settle>>),
    Tick,
    /// Records whose lease was lost have their outcome.
    Stopped,
}

impl<'a> Drive<'a> {
    pub(super) fn new(engine: &'a Engine, batch: Batch<'a>) -> Self {
        let groups: Vec<_> = batch.deliveries.iter().map(|d| d.group.clone()).collect();
        let entries: Vec<_> = batch.deliveries.into_iter().map(Entry::new).collect();
        let keys = entries.iter().map(|entry| entry.key.as_ref());
        let mut plan = Plan::new(keys.zip(groups.iter().map(Option::as_ref)));
        plan.find_copies(|at| entries.get(at).map(Entry::asks));
        Self {
            engine,
            operation: batch.operation,
            policy: batch.policy,
            pace: batch.pace,
            budget: Budget::new(engine.clock.now(), batch.invocation_deadline),
            plan,
            open: entries.len(),
            entries,
            to_claim: VecDeque::new(),
            ready: VecDeque::new(),
            suspects: VecDeque::new(),
            asleep: Asleep::default(),
            settles: Settles::default(),
            claiming: FuturesUnordered::new(),
            claims: 0,
            following: FuturesUnordered::new(),
            running: FuturesUnordered::new(),
            heartbeat: Heartbeat::default(),
            timer: None,
            alone: None,
            starts: 0,
            after_failure: batch.after_failure,
            closed: None,
            stopped: false,
        }
    }

    pub(super) async fn run(mut self) -> Vec<Outcome> {
        for at in self.by_priority() {
            self.consider(at);
        }
        loop {
            self.launch();
            if self.is_done() {
                let records = self.entries.into_iter().filter(|entry| entry.stands_for.is_none());
                return records.map(Entry::into_outcome).collect();
            }
            match poll_fn(|context| self.poll(context)).await {
                Event::Ended((at, Ok(ended))) => self.ended(at, ended),
                Event::Ended((_, Err(Aborted))) | Event::Stopped => {}
                Event::Renewed(renewals) => {
                    for renewal in renewals {
                        self.renewed(renewal);
                    }
                }
                Event::Claimed(claims) => {
                    self.claims = self.claims.saturating_sub(claims.len());
                    for Answer { at, claimed, seen } in claims {
                        self.learn(at, seen);
                        self.claimed(at, claimed);
                    }
                }
                Event::Landed((at, record)) => self.landed(at, record),
                Event::Settled(settled) => {
                    for mut answered in settled {
                        self.learn(answered.member.at, answered.left());
                        self.settled(answered.member, answered.verdict);
                    }
                }
                Event::Tick => self.tick(),
            }
        }
    }

    /// The records in the order in which they are looked at first.
    fn by_priority(&self) -> Vec<usize> {
        let mut order: Vec<(usize, u32)> =
            self.entries.iter().map(|entry| entry.priority).enumerate().collect();
        order.sort_by_key(|(_, priority)| Reverse(*priority));
        order.into_iter().map(|(at, _)| at).collect()
    }

    fn is_done(&self) -> bool {
        self.open == 0 && self.settles.is_empty()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.engine.clock.now()
    }

    /// The entry of record `at`.
    #[expect(clippy::indexing_slicing, reason = "records are numbered as `entries` is")]
    pub(super) fn entry(&mut self, at: usize) -> &mut Entry<'a> {
        &mut self.entries[at]
    }

    /// What happens next. Handlers and claims first, so that what they bring can be settled in one
    /// call; then a call, if none is on its way; the clock last.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let looked = self.now();
        if self.stop_overdue(looked) {
            return Poll::Ready(Event::Stopped);
        }
        if let Poll::Ready(Some(ended)) = self.running.poll_next_unpin(context) {
            return Poll::Ready(Event::Ended(ended));
        }
        if let Poll::Ready(Some(claims)) = self.claiming.poll_next_unpin(context) {
            return Poll::Ready(Event::Claimed(claims));
        }
        if let Poll::Ready(Some(landed)) = self.following.poll_next_unpin(context) {
            return Poll::Ready(Event::Landed(landed));
        }
        if let Poll::Ready(renewals) = self.heartbeat.poll(context) {
            return Poll::Ready(Event::Renewed(renewals));
        }
        let now = self.now();
        self.settles.send(&self.engine.store, now);
        if let Poll::Ready(settled) = self.settles.poll(context) {
            return Poll::Ready(Event::Settled(settled));
        }
        self.poll_timer(looked, context)
    }

    fn poll_timer(&mut self, looked: Timestamp, context: &mut Context<'_>) -> Poll<Event> {
        let stop = if self.stopped { None } else { self.budget.stop() };
        let fixed = [stop, self.budget.reply()].into_iter();
        let due = [self.settles.next_due(), self.heartbeat.next_due(looked)].into_iter();
        let next = fixed.chain(due).flatten();
        let Some(next) = next.chain(self.asleep.next_due()).min() else {
            self.timer = None;
            return Poll::Pending;
        };
        let timer = match &mut self.timer {
            Some((due, timer)) if *due == next => timer,
            timer => {
                let sleep = self.engine.clock.sleep(next.since(self.engine.clock.now()));
                &mut timer.insert((next, sleep)).1
            }
        };
        timer.as_mut().poll(context).map(|()| {
            self.timer = None;
            Event::Tick
        })
    }
}
