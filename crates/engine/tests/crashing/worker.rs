//! One invocation: the real engine, scripted handlers, and the stop of the invocation.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    failure::Failure,
    memory::MemoryEffects,
    outbox::{Message as Outgoing, OutgoingMessage, SendError, Sender},
    policy::{Lease, Policy},
    record::Fingerprint,
};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Job, Pace, Returned, Work},
    call::{Call, RecordId},
    delivered::Delivered,
    observe::{Observer, Report},
};
use lambda_idempotency_testkit::{
    clock::ManualClock,
    crashing::{DelayedStore, DelayedWrites, drop_after},
};

use crate::{
    log::{Log, PUBLISHED, Running, body},
    message::Message,
    source::Answer,
    stop::{Halt, Pause, Stop, WAYS, Way},
    store::Watched,
};

pub(crate) struct Worker<'w> {
    /// The number of the invocation.
    pub(crate) invocation: usize,
    pub(crate) clock: &'w ManualClock,
    pub(crate) store: &'w DelayedStore<Watched>,
    pub(crate) log: &'w Log,
    pub(crate) policy: &'w Policy,
    pub(crate) timeout: Duration,
    pub(crate) ordered: bool,
    pub(crate) publishes: bool,
    pub(crate) stop: Stop,
}

/// The handlers of an invocation.
struct Handlers<'w> {
    worker: &'w Worker<'w>,
    calls: AtomicUsize,
}

impl Worker<'_> {
    /// How long the worker can be suspended before another one takes over, without the clock skew.
    pub(crate) fn lease(&self) -> Duration {
        match self.policy.lease {
            Lease::Renewed { length } => length,
            _ => self.timeout + self.policy.lease_grace,
        }
    }

    /// If the invocation is to be suspended: after how many polls, and until when if it starts now.
    pub(crate) fn thaw(&self, now: Timestamp) -> Option<(usize, Timestamp)> {
        match self.stop {
            Stop::Frozen(polls, longer) => Some((polls, now.plus(self.lease() + longer))),
            _ => None,
        }
    }

    /// Runs an invocation with a batch.
    pub(crate) async fn invoke(&self, batch: &[Message]) -> Answer {
        let observer = Watcher { log: self.log.clone(), invocation: self.invocation };
        let engine = Engine::new(self.store.clone())
            .with_clock(self.clock.clone())
            .with_sender(Wire(self.log.clone()))
            .with_observer(observer);
        let invocation_deadline = self.clock.now().plus(self.timeout);
        let handlers = Handlers { worker: self, calls: AtomicUsize::new(0) };
        let pace = Pace::default();
        let deliveries = batch.iter().map(|message| handlers.delivery(message)).collect();
        let work = Batch::for_operation("op", self.policy, &pace)
            .within(None, Some(invocation_deadline))
            .with(deliveries);
        let running = engine.run(work);
        let outcomes = match self.stop {
            Stop::Dropped(polls, fate) => {
                self.store.delayed_writes(fate);
                let outcomes = drop_after(polls, running).await;
                self.store.delayed_writes(DelayedWrites::Lost);
                outcomes
            }
            Stop::Never | Stop::Frozen(..) | Stop::Handler(_) => Some(running.await),
        };
        let Some(outcomes) = outcomes else {
            self.log.died(self.invocation);
            return Answer::Died;
        };
        if self.clock.now() > invocation_deadline {
            // It was suspended beyond its deadline, so its response is not used.
            return Answer::Died;
        }
        let acknowledged: Vec<bool> = outcomes.iter().map(|o| o.is_acknowledged()).collect();
        self.log.answered(batch, &acknowledged);
        Answer::Acknowledged(acknowledged)
    }
}

impl<'w> Handlers<'w> {
    fn delivery<'d>(&'d self, message: &'d Message) -> Delivery<'d> {
        let job: Job<'d> = Box::new(move |call| {
            Box::pin(async move { self.handle(message, call).await.map(|()| Returned::Nothing) })
        });
        Delivery {
            record: RecordId::new("test", message.id.to_string()),
            delivered: Delivered::default(),
            group: message.group.filter(|_| self.worker.ordered).map(Into::into),
            receives: message.receives,
            lets_pass: false,
            work: Work::Keyed {
                key: message.key(),
                fingerprint: message.fingerprint.map(Fingerprint::new),
                payload: message.payload,
                job,
            },
        }
    }

    async fn handle(&self, message: &Message, call: Call) -> Result<(), Failure> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let Worker { clock, log, invocation, .. } = self.worker;
        let running = log.started(*invocation, message, &call, clock.now());
        self.halt(&running, number, Pause::AtFirst).await;
        if !message.takes.is_zero() {
            self.worker.clock.sleep(message.takes).await;
        }
        self.pause(&running, number, Pause::BeforeTheEffect).await;
        if message.has_step {
            call.step("step", |_| async {
                running.step();
                tokio::task::yield_now().await;
                Ok(())
            })
            .await?;
            running.goes_on();
        }
        // Without a claim, failed attempts are not counted.
        let attempts = match self.worker.policy.mode.claims() {
            true => call.failed_attempts(),
            false => message.receives.saturating_sub(1),
        };
        if attempts < message.fails {
            let failure = if message.permanent { Failure::permanent } else { Failure::transient };
            return Err(failure("scripted"));
        }
        if self.worker.policy.mode.commits_effects() {
            let (commits, holds) = (running.commits(), attempts >= message.refused);
            call.collect(|effects: &mut MemoryEffects| effects.add_if(move || holds, commits))?;
        } else {
            running.effect();
        }
        for position in (0..PUBLISHED).filter(|_| self.worker.publishes) {
            let message = Outgoing::new("q", body(message.label, position));
            call.publish(message.with_group("g"))?;
        }
        self.pause(&running, number, Pause::AfterTheEffect).await;
        Ok(())
    }

    async fn pause(&self, running: &Running, call: usize, pause: Pause) {
        tokio::task::yield_now().await;
        self.halt(running, call, pause).await;
    }

    /// Stops the handler if the script says so at this place.
    async fn halt(&self, running: &Running, call: usize, pause: Pause) {
        let Stop::Handler(halt) = self.worker.stop else { return };
        for way in WAYS {
            if halt == (Halt { call, pause, way }) {
                match way {
                    Way::Hangs => {
                        running.stops(true);
                        std::future::pending().await
                    }
                    Way::Panics => {
                        running.stops(false);
                        // This skips the panic hook and its message.
                        std::panic::resume_unwind(Box::new("scripted"))
                    }
                    Way::Freezes => {
                        self.worker.log.stood_still();
                        self.worker.clock.advance(self.worker.lease() + Duration::from_secs(2));
                    }
                }
            }
        }
    }
}

/// Logs the outcomes that the engine reports.
struct Watcher {
    log: Log,
    invocation: usize,
}

impl Observer for Watcher {
    fn reported(&self, report: &Report<'_>) {
        self.log.settled(self.invocation, report.record.id.parse().unwrap(), report.outcome);
    }
}

/// The sender of an invocation, which can be dropped before, between and after its messages.
struct Wire(Log);

impl Sender for Wire {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            for message in messages {
                self.0.arrived(message);
                tokio::task::yield_now().await;
            }
            messages.iter().map(|_| Ok(())).collect()
        })
    }
}
