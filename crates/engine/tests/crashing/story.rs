//! A story: messages, their source, and a policy, from the first delivery to the last, with stops.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use futures_util::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    policy::{OnConflict, Policy},
    record::Status,
    store::Store,
};
use lambda_idempotency_testkit::{
    clock::ManualClock,
    crashing::{DelayedStore, drop_after},
};

use crate::{
    log::{Log, keys},
    message::Message,
    source::{Answer, Source},
    stop::Stop,
    store::{Mutant, Treatment, Watched},
    worker::Worker,
};

const START: Timestamp = Timestamp::from_secs(1_000_000);
/// Deliveries after which a story counts as endless.
const TOO_MANY: usize = 60;

#[derive(Clone)]
pub(crate) struct Story {
    pub(crate) messages: Vec<Message>,
    pub(crate) source: fn(Vec<Message>) -> Box<dyn Source>,
    pub(crate) policy: Policy,
    pub(crate) timeout: Duration,
    /// After the last stop, the story ends within this many deliveries.
    pub(crate) deliveries: usize,
    /// After the last stop, the story ends within this time.
    pub(crate) within: Duration,
    /// Whether the source may give up the first messages, if handlers of the second ones timed out.
    pub(crate) gives_up: fn(&[usize], &[usize]) -> bool,
    pub(crate) mutant: Mutant,
    /// Whether each handler publishes messages.
    pub(crate) publishes: bool,
    /// Whether the engine gets the groups, as a correct source passes them.
    pub(crate) ordered: bool,
    /// Whether to note the steps.
    pub(crate) noted: bool,
}

/// Runs `future` to its end, and polls the others meanwhile.
async fn beside<F: Future<Output = ()>, T>(
    others: &mut FuturesUnordered<F>,
    future: impl Future<Output = T>,
) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        while let Poll::Ready(Some(())) = others.poll_next_unpin(context) {}
        future.as_mut().poll(context)
    })
    .await
}

/// The result of a story.
pub(crate) struct StoryResult {
    pub(crate) violations: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// The number of stops, including handlers stopped at their deadline.
    pub(crate) stops: u32,
    /// The number of stops that dropped an invocation.
    pub(crate) dropped: usize,
    /// The number of writes that were in flight at the last stop.
    pub(crate) pending: usize,
    /// The number of keys whose effect happened more than once.
    pub(crate) doubled: usize,
    /// The number of keys whose step ran more than once.
    pub(crate) repeated_steps: usize,
    /// The number of handler calls that saw a lost attempt.
    pub(crate) warned: usize,
    /// Deliveries after the last stop, and the time they took.
    pub(crate) deliveries: usize,
    pub(crate) took: Duration,
}

impl Story {
    pub(crate) fn new(
        source: fn(Vec<Message>) -> Box<dyn Source>,
        messages: impl IntoIterator<Item = Message>,
    ) -> Self {
        let numbered = messages.into_iter().enumerate();
        Self {
            messages: numbered.map(|(id, message)| Message { id, ..message }).collect(),
            source,
            policy: Policy::default(),
            timeout: Duration::from_secs(30),
            deliveries: 2,
            within: Duration::from_mins(1),
            gives_up: |given_up, _| given_up.is_empty(),
            mutant: Treatment::Apply,
            publishes: false,
            ordered: true,
            noted: false,
        }
    }

    pub(crate) fn choosing(mut self, choose: impl FnOnce(&mut Policy)) -> Self {
        choose(&mut self.policy);
        self
    }

    /// Waits for busy keys, as sources do that retry at once or have few retries.
    pub(crate) fn waiting(self) -> Self {
        self.choosing(|policy| policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX })
    }

    /// Runs the story. The first stop concerns the first delivery, and so on.
    pub(crate) async fn run(&self, stops: &[Stop]) -> StoryResult {
        let clock = ManualClock::new(START);
        let log = Log::new(self.messages.clone(), self.publishes, self.noted)
            .optimistic(!self.policy.mode.claims());
        let store = DelayedStore::new(Watched::new(log.clone(), self.mutant));
        let worker = |invocation, stop| Worker {
            invocation,
            clock: &clock,
            store: &store,
            log: &log,
            policy: &self.policy,
            timeout: self.timeout,
            ordered: self.ordered,
            publishes: self.publishes,
            stop,
        };
        let mut source = (self.source)(self.messages.clone());
        let mut stops = stops.iter().copied();
        let (mut invocations, mut pending) = (0, 0);
        let (mut total, mut deliveries, mut since) = (0, 0, clock.now());
        let mut frozen = FuturesUnordered::new();
        while let Some(received) = source.receive(clock.now()) {
            let pause = clock.sleep(received.at.since(clock.now()));
            clock.drive(beside(&mut frozen, pause)).await;
            let struck = log.stops();
            let mut stop = stops.next().unwrap_or(Stop::Never);
            let mut workers = Vec::new();
            for batch in &received.batches {
                log.note(|| {
                    let labels: Vec<_> = batch.iter().map(|message| message.label).collect();
                    format!("{}: {labels:?} to invocation {invocations}", received.at)
                });
                batch.iter().for_each(|message| log.ledger.delivered(message.label));
                workers.push((worker(invocations, stop), batch.clone()));
                invocations += 1;
                // A stop concerns one of several concurrent workers.
                stop = Stop::Never;
            }
            let invocations = workers.into_iter().map(|(worker, batch)| {
                let thaw = worker.thaw(clock.now());
                (thaw, worker.invocation, Box::pin(async move { worker.invoke(&batch).await }))
            });
            let answers = join_all(invocations.map(async |(thaw, invocation, mut running)| {
                let Some((polls, at)) = thaw else { return (running.await, None) };
                match drop_after(polls, &mut running).await {
                    Some(answer) => (answer, None),
                    None => {
                        log.frozen(invocation);
                        (Answer::Died, Some((at, running)))
                    }
                }
            }));
            let (answers, left): (Vec<_>, Vec<_>) =
                clock.drive(beside(&mut frozen, answers)).await.into_iter().unzip();
            for (at, running) in left.into_iter().flatten() {
                let pause = clock.sleep(at.since(clock.now()));
                frozen.push(async move {
                    pause.await;
                    // The source does not use the response of a suspended invocation.
                    let _: Answer = running.await;
                });
            }
            let now = clock.now();
            for (message, gone) in source.answered(answers, now) {
                log.gone(&message, gone);
            }
            deliveries += 1;
            total += 1;
            if log.stops() > struck {
                (deliveries, since, pending) = (0, now, store.pending());
            }
            if total > TOO_MANY {
                break;
            }
        }
        let took = clock.now().since(since);
        clock.drive(frozen.collect::<()>()).await;
        store.apply_pending().await;
        self.check(&log, deliveries, took);
        self.check_records(&log, &store).await;
        if log.violations().is_empty() {
            let again = worker(invocations, Stop::Never);
            clock.drive(self.redeliver_all(&again)).await;
        }
        StoryResult {
            violations: log.violations(),
            notes: log.notes(),
            stops: log.stops(),
            dropped: log.dropped(),
            pending,
            doubled: log.ledger.doubled().len(),
            repeated_steps: log.repeated_steps(),
            warned: log.calls_after_losses(),
            deliveries,
            took,
        }
    }

    /// Redelivers every message: each is acknowledged, and no handler runs.
    async fn redeliver_all(&self, worker: &Worker<'_>) {
        let given_up = worker.log.given_up();
        let kept = self.messages.iter().filter(|message| !given_up.contains(&message.id));
        // Without a claim, a message that was not received before is not read before its handler runs.
        let receives = if self.policy.mode.claims() { 0 } else { 9 };
        let kept: Vec<_> = kept.map(|message| Message { receives, ..*message }).collect();
        let answer = worker.invoke(&kept).await;
        if !matches!(answer, Answer::Acknowledged(all) if !all.contains(&false)) {
            worker.log.violation("a redelivery of done messages is not acknowledged".to_owned());
        }
    }

    fn check(&self, log: &Log, deliveries: usize, took: Duration) {
        log.check_effects(self.policy.mode.commits_effects());
        if deliveries > self.deliveries || took > self.within {
            log.violation(format!(
                "stuck: {deliveries} deliveries and {took:?} after the last stop"
            ));
        }
        let given_up = log.given_up();
        if !(self.gives_up)(&given_up, &log.timed_out()) {
            log.violation(format!("given up against the script: {given_up:?}"));
        }
        let lost = log.ledger.lost();
        if !lost.is_empty() {
            log.violation(format!("lost: {lost:?}"));
        }
        let outstanding = log.ledger.outstanding();
        if !outstanding.is_empty() {
            log.violation(format!("neither acknowledged nor given up: {outstanding:?}"));
        }
    }

    /// Checks that no claim is left: the records of all messages that were not given up are final.
    async fn check_records(&self, log: &Log, store: &DelayedStore<Watched>) {
        let ids = log.given_up();
        let given_up = |label| {
            let of = |message: &&Message| message.label == label;
            self.messages.iter().filter(of).all(|message| ids.contains(&message.id))
        };
        for (label, key) in keys(&self.messages) {
            let found = store.inner().read(&[key], START).await.remove(0).unwrap();
            let status = found.map(|record| record.status);
            if !given_up(label) && matches!(status, None | Some(Status::InProgress)) {
                log.violation(format!("{label} is left over as {status:?}"));
            }
        }
    }
}
