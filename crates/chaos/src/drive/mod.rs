//! Carries out a run: serves the queues, the processes and the ledger in one loop.

mod ending;

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use lambda_idempotency_local::{Batch, Disposition, Invocation, InvocationResult, Local};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{
    Error, FaultKind, Mode, Report, Settings, Story, StoryInvocation,
    audit::audit,
    effects::{self, ORDERS},
    history::{End, History, Offence},
    injector::Injector,
    ledger::{Ledger, Line, Step},
    messages::{MessageQueue, Told},
    parcels::Parcels,
    plan::{CLOCKS, Plan, ProcessFault, standstill},
    processes::{CLAIMS, start},
    queues::{self, Queues, Received},
    schedule::{Schedule, order_of},
};

/// How often the ledger is read.
const TICK: Duration = Duration::from_millis(5);
/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Messages that are acknowledged or dead-lettered.
    pub settled: usize,
    /// All messages.
    pub total: usize,
}

/// Runs until every message is acknowledged or dead-lettered, or no message was settled for
/// [`Settings::patience`]; then audits what happened.
///
/// # Errors
/// The run could not be carried out. Mistakes of the function are in the report, not here.
pub async fn run(settings: &Settings, progress: impl Fn(Progress)) -> Result<Report, Error> {
    let begun = Instant::now();
    check(settings)?;
    let schedule = Schedule::new(settings);
    let ledger = Ledger::create()?;
    let (report, reported) = unbounded_channel();
    let (tell, told) = unbounded_channel();
    let sendings = schedule.orders.iter().map(|order| order.sending).collect();
    let messages = match settings.messages {
        true => Some(MessageQueue::start(sendings, tell).await.map_err(Error::Queue)?),
        false => None,
    };
    let address = messages.as_ref().map(MessageQueue::address);
    let local = start(settings, &schedule, &ledger, (report, address)).await?;
    if let Some(messages) = messages.as_ref().filter(|_| settings.mode.commits()) {
        messages.look_into(local.dynamodb());
    }
    let mut rig = Rig::new(settings, &schedule, &local, (ledger, reported, told));
    rig.drain(&progress).await?;
    let probes = rig.probe()?;
    if probes > 0 {
        rig.drain(&progress).await?;
    }
    if let Some(messages) = messages.as_ref().filter(|_| !rig.given_up) {
        rig.end(messages.address()).await?;
        rig.drain(&progress).await?;
    }
    let rows = local.dynamodb().items(CLAIMS)?;
    let left = rig.queues.left();
    if settings.template.is_some() && rig.history.attempts.is_empty() {
        return Err(rig.history.no_effects());
    }
    if settings.mode.commits() || settings.messages {
        let items = local.dynamodb().items(ORDERS)?;
        effects::read(&items, &mut rig.history, &mut rig.parcels);
    }
    rig.parcels.audit(&mut rig.history);
    let findings = audit(&schedule, &rig.history, &rows, left);
    let mut counts = rig.injector.counts(&local);
    counts.extend(messages.iter().flat_map(MessageQueue::faults));
    let usage = local.dynamodb().usage();
    let report = Report::new(settings, &schedule, &rig.history, findings, counts)
        .with_cost(&usage, begun.elapsed())
        .with_end(probes, left, rig.given_up)
        .with_messages(&schedule, &rig.parcels, rig.relayed)
        .with_story(rig.story(begun));
    drop(rig);
    local.shutdown().await;
    Ok(report)
}

/// Whether the function can get what the settings ask for.
fn check(settings: &Settings) -> Result<(), Error> {
    let scripted = settings.faults.iter().find(|kind| !FaultKind::FOR_ANY_FUNCTION.contains(kind));
    if let (Some(_), Some(kind)) = (&settings.template, scripted) {
        return Err(Error::ScriptedFault(*kind));
    }
    if settings.template.is_some() && (settings.mode != Mode::Claim || settings.messages) {
        return Err(Error::ScriptedMode);
    }
    if settings.messages && settings.mode == Mode::Optimistic {
        return Err(Error::MessagesWithoutClaims);
    }
    match settings.faults.iter().find(|kind| !settings.allows(**kind)) {
        Some(kind) if FaultKind::OF_MESSAGES.contains(kind) => Err(Error::MessageFault(*kind)),
        Some(kind) => Err(Error::TransactionFault(*kind)),
        None => Ok(()),
    }
}

struct Rig<'a> {
    settings: &'a Settings,
    schedule: &'a Schedule,
    local: &'a Local,
    ledger: Ledger,
    reported: UnboundedReceiver<Line>,
    /// What the queue of the function's messages tells.
    told: UnboundedReceiver<Told>,
    /// The messages that the function has published, on their way to its consumer.
    parcels: Parcels,
    /// How many messages the relay has sent.
    relayed: usize,
    history: History,
    injector: Injector,
    queues: Queues<'a>,
    begun: usize,
    signalled: HashSet<usize>,
    /// When a message was last settled.
    moved: Instant,
    /// That was too long ago.
    given_up: bool,
    invocations: u64,
    answered: Vec<StoryInvocation>,
}

impl<'a> Rig<'a> {
    fn new(
        settings: &'a Settings,
        schedule: &'a Schedule,
        local: &'a Local,
        (ledger, reported, told): (Ledger, UnboundedReceiver<Line>, UnboundedReceiver<Told>),
    ) -> Self {
        Self {
            settings,
            schedule,
            local,
            ledger,
            reported,
            told,
            parcels: Parcels::default(),
            relayed: 0,
            history: History::default(),
            injector: Injector::default(),
            queues: Queues::new(settings, schedule),
            begun: 0,
            signalled: HashSet::new(),
            moved: Instant::now(),
            given_up: false,
            invocations: 0,
            answered: Vec::new(),
        }
    }

    /// Delivers until no message is left, or none was settled for the settings' patience.
    async fn drain(&mut self, progress: &impl Fn(Progress)) -> Result<(), Error> {
        self.moved = Instant::now();
        let local = self.local;
        let mut running = FuturesUnordered::new();
        loop {
            self.queues.feed();
            while running.len() < self.settings.processes
                && let Some(received) = self.receive()
            {
                self.invocations += 1;
                let request = request_id(self.invocations);
                self.signal_soon(&received.batch);
                self.signal_consumer(&received);
                running.push(async move {
                    let event = received.batch.event().to_string();
                    let invocation = local.invoke_bytes(request, event).await;
                    (received, invocation)
                });
            }
            let idle = running.is_empty() && self.queues.left() == 0 && self.injector.is_over();
            self.given_up = self.moved.elapsed() > self.settings.patience;
            if idle || self.given_up {
                return Ok(());
            }
            tokio::select! {
                Some((received, invocation)) = running.next() => {
                    self.ended(&received, &invocation?)?;
                    progress(Progress {
                        settled: self.history.settled.len(),
                        total: self.schedule.messages.len(),
                    });
                }
                Some(line) = self.reported.recv() => self.effect(&line),
                Some(told) = self.told.recv() => self.hear(told),
                () = tokio::time::sleep(TICK) => self.tick()?,
            }
        }
    }

    /// Receives a batch, and injects the faults that are scheduled for its new messages.
    fn receive(&mut self) -> Option<Received> {
        let received = self.queues.receive()?;
        if received.line != queues::Line::Parcels {
            let fresh = received.batch.records().filter(|(_, receives)| *receives == 1).count();
            self.inject_store_faults(fresh);
        }
        Some(received)
    }

    /// Injects the faults of the store that are scheduled for these `fresh` messages: store faults are
    /// scheduled by the number of messages received.
    fn inject_store_faults(&mut self, fresh: usize) {
        let (before, now) = (self.begun, self.begun + fresh);
        self.begun = now;
        let due = self.schedule.store_faults.iter();
        for store_fault in due.filter(|store_fault| (before..now).contains(&store_fault.at)) {
            self.injector.store_fault(self.local, CLAIMS, store_fault);
        }
    }

    fn tick(&mut self) -> Result<(), Error> {
        self.read()?;
        for pid in self.injector.tick(self.local) {
            self.read()?;
            self.history.gone(pid);
        }
        Ok(())
    }

    /// Reads the ledger, and sends the signals that the plan asks for.
    fn read(&mut self) -> Result<(), Error> {
        for line in self.ledger.read()? {
            let read = self.history.line(&line);
            self.signal_at(&line, read);
        }
        while let Ok(line) = self.reported.try_recv() {
            self.effect(&line);
        }
        while let Ok(told) = self.told.try_recv() {
            self.hear(told);
        }
        Ok(())
    }

    /// Adds an effect that a function reported on its output.
    fn effect(&mut self, line: &Line) {
        let read = self.history.effect_alone(line);
        self.signal_at(line, read);
    }

    /// Sends the signal that the plan asks for at the first line of this kind.
    fn signal_at(&mut self, line: &Line, read: Option<(usize, bool)>) {
        let Some((order, true)) = read else { return };
        let plan = self.schedule.orders.get(order).map(|order| &order.plan);
        if let Some(Plan::Signalled { at, fault, .. }) = plan
            && (*at == line.step || (*at, line.step) == (Step::Effect, Step::Collected))
            && !matches!(at, Step::Sending | Step::Sent)
            && self.signalled.insert(order)
        {
            self.injector.signal(self.local, line.pid, *fault, standstill(self.settings));
        }
    }

    /// A user's function does not say when its handlers start, so a signal at the start comes some time after the
    /// first delivery.
    fn signal_soon(&mut self, batch: &Batch) {
        if self.settings.template.is_none() {
            return;
        }
        for (id, _) in batch.records() {
            let Some(number) = id.and_then(order_of) else { continue };
            let plan = self.schedule.orders.get(number).map(|order| &order.plan);
            if let Some(Plan::Signalled { at: Step::Start, fault, .. }) = plan
                && self.signalled.insert(number)
            {
                let delay = Duration::from_millis(number as u64 * 7 % 40);
                let lasts = standstill(self.settings);
                self.injector.signal_later(delay, request_id(self.invocations), *fault, lasts);
            }
        }
    }

    fn ended(&mut self, received: &Received, invocation: &Invocation) -> Result<(), Error> {
        // Lines read from here on belong to the process's next invocation, so read this one's first.
        self.read()?;
        let batch = &received.batch;
        let pid = invocation.pid;
        let stopped = self.injector.was_stopped(pid);
        let end = match invocation.result {
            InvocationResult::TimedOut => {
                self.injector.overran(pid, self.may_run_on(batch));
                End::TimedOut
            }
            InvocationResult::Exited { .. } if self.injector.was_killed(pid) => End::Killed,
            InvocationResult::Exited { .. } => End::Crashed,
            _ => End::Answered,
        };
        let overran = end == End::TimedOut || invocation.duration > self.settings.timeout;
        self.history.ended(invocation, end, stopped, overran);
        let before = self.history.settled.len();
        let is_doomed = received.line == queues::Line::Doomed;
        let dispositions = self.queues.settle(received, &invocation.result);
        if self.settings.story {
            let messages = batch.records().zip(&dispositions);
            let messages: Vec<(String, Disposition)> = messages
                .map(|((id, _), disposition)| (id.unwrap_or_default().to_owned(), *disposition))
                .collect();
            self.answered.push(StoryInvocation { invocation: invocation.clone(), messages });
        }
        if received.line == queues::Line::Parcels {
            self.consumed(batch, &dispositions);
            return Ok(());
        }
        for ((id, _), disposition) in batch.records().zip(dispositions) {
            self.look_up(id, disposition)?;
            self.look_for_messages(id, disposition);
            self.history.delivered(id.unwrap_or_default(), is_doomed, disposition);
        }
        if self.history.settled.len() > before {
            self.moved = Instant::now();
        }
        Ok(())
    }

    /// Asks the table whether the order of an acknowledged message is placed, where effects are in transactions.
    fn look_up(&mut self, message: Option<&str>, disposition: Disposition) -> Result<(), Error> {
        let asks = self.settings.mode.commits() && disposition == Disposition::Done;
        if let Some(order) = message.filter(|_| asks).and_then(order_of)
            && !self.history.is_placed(order)
        {
            self.history.placed(order, effects::placed(self.local.dynamodb(), order)?);
        }
        Ok(())
    }

    /// Whether the plan of an order in this batch lets its process run on past the deadline.
    fn may_run_on(&self, batch: &Batch) -> bool {
        let orders = batch.records().filter_map(|(id, _)| order_of(id?));
        let mut plans = orders.filter_map(|order| Some(&self.schedule.orders.get(order)?.plan));
        plans.any(|plan| matches!(plan, Plan::Overrun { left_running: true, .. }))
    }

    /// What happened, if the settings ask for it.
    fn story(&mut self, began: Instant) -> Option<Story> {
        let mut story = Story::new(began).with_effects(&self.history);
        story.invocations = std::mem::take(&mut self.answered);
        story.faults = self.injector.take_signals();
        self.settings.story.then_some(story)
    }

    /// Sends one more copy of each order whose key is still held, as it is after a lost completion.
    /// Returns how many. A key that stays held is stuck.
    fn probe(&mut self) -> Result<usize, Error> {
        self.local.dynamodb().faults().clear();
        let held: HashSet<String> = self
            .local
            .dynamodb()
            .items(CLAIMS)?
            .iter()
            .filter(|row| row.pointer("/status/S").and_then(Value::as_str) == Some("INPROGRESS"))
            .filter_map(|row| row.pointer("/id/S")?.as_str()?.rsplit('#').next().map(str::to_owned))
            .collect();
        let open = self
            .history
            .orders
            .iter()
            .filter(|(_, order)| order.hashes.iter().any(|hash| held.contains(hash)));
        let open: Vec<_> = open.filter_map(|(order, _)| self.schedule.probe(*order)).collect();
        for message in &open {
            self.queues.send(message);
        }
        Ok(open.len())
    }
}

/// The request id of the nth invocation.
fn request_id(nth: u64) -> String {
    format!("chaos-{nth:08}")
}
