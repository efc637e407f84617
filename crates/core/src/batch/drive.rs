//! One batch on its way: what is claimed, runs, settles and waits, and what happens next.

use std::{
    cmp::Reverse,
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{self, Aborted, abortable},
    stream::FuturesUnordered,
};

use super::{
    AfterFailure, Batch, Engine, Pace, Returned,
    budget::Budget,
    claims::{self, Answer, Claimed, Wanted},
    entry::{Entry, Stage},
    guarded::Guarded,
    heartbeat::{Heartbeat, Renewal},
    plan::Plan,
    settles::{Settle, Settles},
    sharing::{Boarded, Landed},
};
use crate::{
    call::{Call, History},
    clock::{BoxFuture, Timestamp},
    failure::Failure,
    observe::Report,
    outcome::{NotStarted, Outcome},
    policy::Policy,
    record::Owner,
    store::{StoreError, StoreErrorKind, Verdict},
};

/// How many claims may be on their way or wait for their handler: enough for four full calls of
/// DynamoDB, few enough not to hold keys that will not be used.
const CLAIM_AHEAD: usize = 100;

/// A batch in progress. `drive` holds the loop; `turns` what each event means.
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
    pub(super) asleep: Vec<Asleep>,
    pub(super) settles: Settles,
    claiming: FuturesUnordered<BoxFuture<'static, Vec<Answer>>>,
    /// How many keys are in `claiming`.
    claims: usize,
    /// Other invocations of this process that have the key of one that is asleep.
    pub(super) following: FuturesUnordered<BoxFuture<'static, Landed>>,
    running: FuturesUnordered<BoxFuture<'a, Finished>>,
    pub(super) heartbeat: Heartbeat,
    timer: Option<(Timestamp, BoxFuture<'static, ()>)>,
    /// The suspect that is being claimed or runs.
    pub(super) alone: Option<usize>,
    any_started: bool,
    pub(super) after_failure: AfterFailure,
    /// Why nothing is started any more, once that is so.
    pub(super) closed: Option<NotStarted>,
    /// The time for handlers is over.
    pub(super) stopped: bool,
}

/// A record whose key is busy.
pub(super) struct Asleep {
    pub(super) at: usize,
    pub(super) wake: Timestamp,
    pub(super) until: Timestamp,
}

/// A handler that returned, or was stopped.
type Finished = (usize, Result<Result<Returned, Failure>, Aborted>);

enum Event {
    Finished(Finished),
    Renewed(Vec<(Renewal, Verdict)>),
    Claimed(Vec<Answer>),
    Landed(Landed),
    Settled(Vec<(Settle, Verdict)>),
    Tick,
}

impl<'a> Drive<'a> {
    pub(super) fn new(engine: &'a Engine, batch: Batch<'a>) -> Self {
        let groups: Vec<_> = batch.deliveries.iter().map(|d| d.group.clone()).collect();
        let entries: Vec<_> = batch.deliveries.into_iter().map(Entry::new).collect();
        let keys = entries.iter().map(|entry| entry.key.as_ref());
        Self {
            engine,
            operation: batch.operation,
            policy: batch.policy,
            pace: batch.pace,
            budget: Budget::new(engine.clock.now(), batch.deadline),
            plan: Plan::new(keys.zip(groups.iter().map(Option::as_ref))),
            open: entries.len(),
            entries,
            to_claim: VecDeque::new(),
            ready: VecDeque::new(),
            suspects: VecDeque::new(),
            asleep: Vec::new(),
            settles: Settles::default(),
            claiming: FuturesUnordered::new(),
            claims: 0,
            following: FuturesUnordered::new(),
            running: FuturesUnordered::new(),
            heartbeat: Heartbeat::default(),
            timer: None,
            alone: None,
            any_started: false,
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
                return self.entries.into_iter().map(Entry::into_outcome).collect();
            }
            match poll_fn(|context| self.poll(context)).await {
                Event::Finished((at, Ok(result))) => self.finished(at, result),
                Event::Finished((_, Err(Aborted))) => {}
                Event::Renewed(renewals) => {
                    for (renewal, verdict) in renewals {
                        self.renewed(renewal, verdict);
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
                    for (settle, verdict) in settled {
                        self.learn(settle.at, settle.left(&verdict));
                        self.settled(settle, verdict);
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

    /// Starts all that can be started.
    fn launch(&mut self) {
        let now = self.now();
        if !self.stopped && self.budget.is_over(now) {
            self.stop();
        }
        self.beat(now);
        self.wake(now);
        while self.alone.is_none_or(|alone| self.ready.front() == Some(&alone))
            && self.running.len() < self.policy.concurrency.max(1)
            && let Some(at) = self.ready.pop_front()
        {
            if !self.entry(at).is_held_at(now) {
                self.not_started(at, NotStarted::Lease);
            } else if self.may_start(now) {
                self.start(at, now);
            } else {
                self.not_started(at, NotStarted::Deadline);
            }
        }
        if self.alone.is_none() {
            self.claim_ready(now);
        }
        while self.is_idle()
            && let Some(at) = self.suspects.pop_front()
        {
            if self.may_start(now) {
                self.alone = Some(at);
                self.claim(vec![at], now);
            } else {
                self.finish(at, Outcome::Returned(NotStarted::Deadline));
            }
        }
    }

    fn wake(&mut self, now: Timestamp) {
        let awake: Vec<_> = self.asleep.extract_if(.., |asleep| asleep.wake <= now).collect();
        self.to_claim.extend(awake.into_iter().map(|asleep| asleep.at));
    }

    /// Whether nothing is under way but waiting.
    fn is_idle(&self) -> bool {
        self.alone.is_none()
            && self.running.is_empty()
            && self.claims == 0
            && self.ready.is_empty()
            && self.to_claim.is_empty()
            && self.settles.is_empty()
    }

    /// The first record always starts: otherwise one that is expected to take long never would.
    fn may_start(&self, now: Timestamp) -> bool {
        self.closed.is_none() && (!self.any_started || self.budget.allows(now, self.pace))
    }

    fn claim_ready(&mut self, now: Timestamp) {
        if !self.to_claim.is_empty() && !self.may_start(now) {
            while let Some(at) = self.to_claim.pop_front() {
                self.finish(at, Outcome::Returned(NotStarted::Deadline));
            }
        }
        // Again, because those who follow another invocation take no room.
        while !self.to_claim.is_empty() {
            let room = CLAIM_AHEAD.saturating_sub(self.claims + self.ready.len());
            // Of many, not one at a time as room comes free.
            if room < self.to_claim.len().min(CLAIM_AHEAD / 2) {
                return;
            }
            let next = self.to_claim.drain(..room.min(self.to_claim.len())).collect();
            self.claim(next, now);
        }
    }

    fn claim(&mut self, records: Vec<usize>, now: Timestamp) {
        let mut wanted = Vec::with_capacity(records.len());
        let mut known = Vec::new();
        for at in records {
            let alone = self.alone == Some(at);
            let Some(key) = self.entry(at).key.clone() else { continue };
            match (self.board(at, &key, now), Owner::random()) {
                (Boarded::Follows, _) => continue,
                (Boarded::Knows(claimed), _) => known.push(Answer { at, claimed, seen: None }),
                (Boarded::Leads, Ok(owner)) => {
                    let claim = self.claim_by(owner, at, now);
                    let look_first = alone || self.entry(at).looks > 0;
                    wanted.push(Wanted { at, key, claim, look_first, from_vanished: alone });
                }
                (Boarded::Leads, Err(error)) => {
                    let error = StoreError::new(StoreErrorKind::Unavailable, error.to_string());
                    let claimed = Claimed::Unavailable(error);
                    known.push(Answer { at, claimed, seen: None });
                }
            }
            self.entry(at).stage = Stage::Claiming;
        }
        self.claims += wanted.len() + known.len();
        if !known.is_empty() {
            self.claiming.push(Box::pin(future::ready(known)));
        }
        if !wanted.is_empty() {
            let deadline = self.budget.claim_deadline(now);
            let last = self.budget.doubt_deadline(deadline);
            let (store, clock) = (Arc::clone(&self.engine.store), Arc::clone(&self.engine.clock));
            self.claiming.push(Box::pin(claims::claim(store, clock, wanted, deadline, last)));
        }
    }

    fn start(&mut self, at: usize, now: Timestamp) {
        let deadline = self.budget.stop();
        let clock = Arc::clone(&self.engine.clock);
        let entry = self.entry(at);
        let Some(job) = entry.job.take() else { return };
        let history = entry.held.as_ref().map(|held| History::of(&held.record));
        let history = history.unwrap_or_else(|| History::none(now));
        let call = Call::new(entry.key.clone(), entry.record.clone(), history, deadline, clock);
        let (handler, handle) = abortable(Guarded::new(Box::pin(async move { job(call).await })));
        entry.handler = Some(handle);
        entry.started = Some(now);
        entry.stage = Stage::Running;
        self.any_started = true;
        self.running.push(Box::pin(handler.map(move |result| (at, result))));
    }

    /// Drops the handlers that still run; returns whose they were.
    pub(super) fn drop_running(&mut self) -> Vec<usize> {
        self.running.clear();
        self.in_stage(Stage::Running)
    }

    /// Drops the claims on their way; returns whose they were.
    pub(super) fn drop_claims(&mut self) -> Vec<usize> {
        self.claiming.clear();
        self.claims = 0;
        self.in_stage(Stage::Claiming)
    }

    fn in_stage(&self, stage: Stage) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.stage == stage && entry.outcome.is_none())
            .map(|(at, _)| at)
            .collect()
    }

    /// What happens next. Handlers and claims first, so that what they bring can be settled in one
    /// call; then a call, if none is on its way; the clock last.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if let Poll::Ready(Some(finished)) = self.running.poll_next_unpin(context) {
            return Poll::Ready(Event::Finished(finished));
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
        self.poll_timer(now, context)
    }

    fn poll_timer(&mut self, now: Timestamp, context: &mut Context<'_>) -> Poll<Event> {
        let stop = if self.stopped { None } else { self.budget.stop() };
        let fixed = [stop, self.budget.reply()].into_iter();
        let due = [self.settles.next_due(), self.heartbeat.next_due()].into_iter();
        let next = fixed.chain(due).flatten();
        let Some(next) = next.chain(self.asleep.iter().map(|asleep| asleep.wake)).min() else {
            return Poll::Pending;
        };
        let timer = match &mut self.timer {
            Some((due, timer)) if *due == next => timer,
            timer => {
                let sleep = self.engine.clock.sleep(next.since(now));
                &mut timer.insert((next, sleep)).1
            }
        };
        timer.as_mut().poll(context).map(|()| {
            self.timer = None;
            Event::Tick
        })
    }

    pub(super) fn report(&self, entry: &Entry<'a>, outcome: &Outcome) {
        let mut report = Report::new(self.operation, &entry.record, entry.key.as_ref(), outcome);
        report.ran_for = entry.ran_for;
        if let Some(held) = &entry.held {
            report.failures = held.failures();
            report.vanished = held.vanished();
        }
        self.engine.observer.settled(&report);
    }
}
