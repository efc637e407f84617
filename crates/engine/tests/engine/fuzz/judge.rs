//! What must hold whatever happens: when a handler begins, while an invocation runs, and of its outcomes.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::{Either, select};
use lambda_idempotency_core::{clock::Clock as _, outcome::Outcome, record::Status};
use lambda_idempotency_engine::{
    batch::{Batch, Engine},
    call::Call,
};
use lambda_idempotency_testkit::crashing::drop_after;

use super::{
    scenario::{Invocation, Kind, Plan},
    world::{Flight, Reports, Suspicion, World, key},
};

/// An invocation that takes longer than this hangs.
const HANGS: Duration = Duration::from_secs(40_000);

impl World {
    /// A handler begins. Returns how much its record is suspected.
    pub(super) fn begins(
        &self,
        at: usize,
        call: &Call,
        all: &[Plan],
        flight: &Flight,
    ) -> Option<Suspicion> {
        let plan = &all[at];
        let say = |what: String| self.wrong.say(format!("record {at} {what}"));
        if std::mem::replace(&mut flight.began.lock().unwrap()[at], true) {
            say("begins twice".into());
        }
        let now_running = flight.running.fetch_add(1, Ordering::Relaxed) + 1;
        if now_running > self.scenario.policy.concurrency {
            say(format!("is the {now_running}th at once"));
        }
        let mut reported = flight.reported.lock().unwrap().clone();
        for (at, is_final) in flight.is_final.lock().unwrap().iter().enumerate() {
            if *is_final && all[at].lets_pass {
                reported[at] = Some(true);
            }
        }
        if let Some(group) = plan.group {
            for (before, other) in all.iter().enumerate().take(at) {
                if other.group == Some(group) && reported[before] != Some(true) {
                    say(format!("begins before {before} of its group has ended"));
                }
            }
        }
        let suspicion = self.suspicion(plan, call);
        self.begins_beside(suspicion, flight, &say);
        if !matches!(plan.kind, Kind::Keyed) {
            return suspicion;
        }
        let mut running = self.running.lock().unwrap();
        let beside = running.entry(plan.key).or_default();
        *beside += 1;
        let claims = self.strict && self.scenario.policy.mode.claims();
        if *beside > 1 && claims {
            say("runs beside another of its key".into());
        }
        drop(running);
        if !claims {
            return suspicion;
        }
        match self.stored(&key(plan.key)) {
            Some(record)
                if record.status == Status::InProgress
                    && record.owner.is_some()
                    && record.lease_until.is_some_and(|until| self.clock.now() <= until) => {}
            other => say(format!("begins over {other:?}")),
        }
        suspicion
    }

    /// How often a record was lost in a row, as its claim says. `None` if that is not known: it runs without
    /// a claim, and so without its counts (its fence may be that of a claim made in the same millisecond), or a fault
    /// of the store has replaced its claim, which has another fence then.
    fn suspicion(&self, plan: &Plan, call: &Call) -> Option<Suspicion> {
        if !matches!(plan.kind, Kind::Keyed) {
            return Some(Suspicion::default());
        }
        let stored = self.stored(&key(plan.key)).filter(|record| {
            record.fence == call.fence() && record.lost_attempts == call.lost_attempts()
        })?;
        Some(Suspicion { losses: stored.consecutive_losses })
    }

    /// Suspects that were lost once run beside each other only, others alone.
    fn begins_beside(&self, mine: Option<Suspicion>, flight: &Flight, say: &impl Fn(String)) {
        let mut own = flight.suspicions.lock().unwrap();
        own.push(mine);
        let Some(mine) = mine else { return };
        let beside: Vec<Suspicion> = own.iter().flatten().copied().collect();
        let is_full = mine.losses > 1 && beside.len() > 1;
        if is_full || beside.iter().any(|other| *other != mine) {
            say(format!("begins in {beside:?}"));
        }
    }

    pub(super) async fn invoke(
        self: &Arc<Self>,
        engine: &Engine,
        planned: &Invocation,
    ) -> Vec<Outcome> {
        let all = &planned.records;
        let process = &self.processes[planned.process];
        if process.is_dead.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut killed = std::pin::pin!(process.dies.notified());
        killed.as_mut().enable();
        let flight = Arc::new(Flight {
            reported: Mutex::new(vec![None; all.len()]),
            is_final: Mutex::new(vec![false; all.len()]),
            labels: Mutex::new(vec![None; all.len()]),
            began: Mutex::new(vec![false; all.len()]),
            running: AtomicUsize::new(0),
            process: planned.process,
            receives: all.iter().map(|plan| self.receive(plan)).collect(),
            suspicions: Mutex::default(),
        });
        let engine = engine.clone().with_observer(Reports(Arc::clone(&flight), self.wrong.clone()));
        let texts: Vec<String> =
            all.iter().map(|plan| format!("{}/{}", plan.key, plan.payload)).collect();
        let deliveries = (0..all.len()).map(|at| self.delivery(at, all, &texts, &flight)).collect();
        let begun = self.clock.now();
        let blocked = *self.blocked.lock().unwrap();
        let invocation_deadline =
            self.scenario.timeout.map(|ms| begun.plus(Duration::from_millis(ms)));
        // Somebody takes care of some records after the batch, and needs time for that.
        let is_followed = all.iter().any(|plan| plan.lets_pass);
        let time_after = Duration::from_secs(if is_followed { 2 } else { 0 });
        let batch = Batch::for_operation("op", &self.scenario.policy, &self.pace)
            .within(None, invocation_deadline)
            .leaving(time_after)
            .with(deliveries);
        let running = Spurious {
            inner: Box::pin(engine.run(batch)),
            asked: Arc::clone(&self.asked),
            spurious: planned.spurious,
        };
        let running = drop_after(planned.dies_after.unwrap_or(usize::MAX), running);
        let running = std::pin::pin!(running);
        let ends = select(killed, self.clock.sleep(HANGS));
        let outcomes = match select(running, ends).await {
            Either::Left((Some(outcomes), _)) => outcomes,
            Either::Left((None, _)) | Either::Right((Either::Left(_), _)) => return Vec::new(),
            Either::Right((Either::Right(_), _)) => {
                self.wrong.say("it hangs");
                return Vec::new();
            }
        };
        let late = *self.blocked.lock().unwrap() - blocked;
        if let Some(deadline) = invocation_deadline
            && self.clock.now() > deadline.plus(late)
        {
            self.wrong.say(format!("{:?} late", self.clock.now().since(deadline)));
        }
        if outcomes.len() != all.len() {
            self.wrong.say(format!("{} outcomes for {} records", outcomes.len(), all.len()));
        }
        let labels = flight.labels.lock().unwrap().clone();
        for (at, outcome) in outcomes.iter().enumerate() {
            if outcome.is_acknowledged() {
                self.acknowledged.lock().unwrap().insert(all[at].key);
            }
            if labels[at] != Some(outcome.label()) {
                self.wrong.say(format!(
                    "{at} was reported {:?}, is {}",
                    labels[at],
                    outcome.label()
                ));
            }
            let began = flight.began.lock().unwrap()[at];
            self.judge(at, &all[at], began, outcome);
        }
        outcomes
    }

    /// How often the record was received, this time included.
    fn receive(&self, plan: &Plan) -> u32 {
        let mut received = self.received.lock().unwrap();
        let count = received.entry((plan.key, plan.payload)).or_default();
        *count += 1;
        self.scenario.counts.map_or(plan.receives, |most| (*count - 1) % most + 1)
    }

    /// Whether each key stands once in a batch, in one invocation at a time, and nothing fails.
    fn is_undisturbed(&self) -> bool {
        let scenario = &self.scenario;
        scenario.faults.is_empty()
            && !scenario.has_deaths()
            && self.blocked.lock().unwrap().is_zero()
            && scenario.timeout.is_some()
            && scenario.waves.iter().all(|(_, wave)| {
                let [planned] = &wave[..] else { return false };
                let keys: BTreeSet<u8> = planned.records.iter().map(|plan| plan.key).collect();
                keys.len() == planned.records.len()
            })
    }

    /// Whether a record may have this outcome.
    fn judge(&self, at: usize, plan: &Plan, began: bool, outcome: &Outcome) {
        let say = |what: &str| {
            self.wrong.say(format!("record {at} of key {}: {} {what}", plan.key, outcome.label()));
        };
        let ran = matches!(
            outcome,
            Outcome::Executed { .. } | Outcome::CompletionLost { .. } | Outcome::Unprotected { .. }
        );
        if ran && !began {
            say("did not begin");
        }
        if !matches!(plan.kind, Kind::Keyed) {
            return;
        }
        let stored = self.stored(&key(plan.key));
        let completed = stored.as_ref().is_some_and(|record| record.status == Status::Completed);
        let permanent =
            stored.as_ref().is_some_and(|record| record.status == Status::PermanentlyFailed);
        let locked = stored.as_ref().is_some_and(|record| {
            record.status == Status::InProgress
                && record.lease_until.is_some_and(|until| self.clock.now() <= until)
        });
        self.judge_messages(plan.key, outcome);
        // A copy in the batch shares the outcome.
        let mut planned = self.scenario.waves.iter().flat_map(|(_, wave)| wave);
        let may_be_unclaimed = self.scenario.policy.on_outage.runs_unprotected()
            && planned.any(|batch| {
                batch.records.iter().any(|other| other.key == plan.key && other.lets_pass)
            });
        match outcome {
            Outcome::Executed { .. } if !completed => say("but is not completed"),
            Outcome::PermanentlyFailed { .. } if !permanent => say("but that is not stored"),
            // Without a claim nothing records it, and somebody takes care of the record.
            Outcome::Failed { permanent: true, .. } if !permanent && !may_be_unclaimed => {
                say("but that is not stored")
            }
            Outcome::Replayed { .. } | Outcome::Superseded { .. } if !completed => {
                say("but nothing is completed")
            }
            Outcome::Coalesced { .. } if !self.done.lock().unwrap().contains(&plan.key) => {
                say("but nothing was done")
            }
            Outcome::Returned(_) if self.is_undisturbed() && locked => say("but its key is locked"),
            Outcome::TimedOut { .. }
                if self.is_undisturbed()
                    && self.scenario.policy.mode.claims()
                    && !locked
                    && !permanent =>
            {
                say("but its key is free")
            }
            _ => {}
        }
    }
}

/// Polls `inner`, with some wakings that mean nothing.
struct Spurious<F> {
    inner: Pin<Box<F>>,
    asked: Arc<AtomicUsize>,
    spurious: usize,
}

impl<F: Future> Future for Spurious<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.asked.store(0, Ordering::Relaxed);
        let polled = self.inner.as_mut().poll(cx);
        if polled.is_pending() && self.spurious > 0 {
            self.spurious -= 1;
            cx.waker().wake_by_ref();
        }
        polled
    }
}
