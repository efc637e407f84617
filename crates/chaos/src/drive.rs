//! Carries out a run in one loop: receives messages, hands them to processes, looks at what happens meanwhile, and sends the
//! signals that the plans of orders ask for.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use lambda_idempotency_local::{Batch, Disposition, Invocation, Local};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{
    audit::{Expected, audit},
    error::Error,
    history::{End, History, Offence},
    injector::Injector,
    ledger::{Ledger, Line, Step, attempt},
    plan::{Plan, standstill},
    processes::start,
    queues::{self, Queues, Received},
    report::Report,
    schedule::{self, Schedule, order_of},
    settings::Settings,
    store::{Item, Store},
};

/// How often the ledger is read.
const TICK: Duration = Duration::from_millis(5);
/// After how many deliveries of each of the first messages a user's function that has reported no effect is taken for one
/// that reports none. Those meet hardly any faults.
const SILENT: u64 = 10;
/// The beginning of the key of an attempt's item.
const ATTEMPT: &str = "attempt ";

/// Runs until every message is acknowledged or dead-lettered, or no message was for
/// [`Settings::patience`]; then audits what happened. `progress` is told how many of them are. Dropping the future ends
/// the run, and all that it has started.
///
/// # Errors
/// The run could not be carried out. Mistakes of the function are in the report, not here.
pub async fn run(settings: &Settings, progress: impl Fn(usize)) -> Result<Report, Error> {
    settings.check()?;
    let begun = Instant::now();
    let schedule = Schedule::new(settings);
    let ledger = Ledger::create()?;
    let (report, reported) = unbounded_channel();
    let store = Store::start().await?;
    let local = start(settings, (&schedule, &store), &ledger, report).await?;
    let mut rig = Rig::new((settings, &schedule), (&local, &store), (ledger, reported));
    rig.drain(&progress).await?;
    let probes = rig.probe()?;
    if probes > 0 {
        rig.drain(&progress).await?;
    }
    let rows = store.rows()?;
    let left = rig.queues.left();
    if settings.template.is_some() && rig.history.attempts.is_empty() {
        return Err(rig.history.no_effects());
    }
    if settings.mode.commits() {
        read_effects(&store.items()?, &mut rig.history);
    }
    let findings = audit(&Expected::from(&schedule), &rig.history, &rows, left);
    let injected = rig.injector.counts(&store);
    let Rig { history, given_up, .. } = rig;
    let ended =
        |what| history.dispositions.values().filter(|disposition| **disposition == what).count();
    let usage = store.dynamodb.usage();
    let outcomes = history.outcomes.iter();
    let report = Report {
        seed: settings.seed,
        schedule: format!("{:016x}", schedule.digest()),
        processes: settings.processes,
        mode: settings.mode,
        source: schedule.origin(),
        faults: settings.faults.iter().copied().collect(),
        messages: schedule.messages.len(),
        probes,
        keys: schedule.orders.len(),
        deliveries: history.deliveries,
        invocations: history.invocations.len(),
        outcomes: outcomes.map(|(outcome, n)| (outcome.as_str().to_owned(), *n)).collect(),
        acknowledged: ended(Disposition::Done),
        dead_lettered: ended(Disposition::DeadLettered),
        returned: history.returned,
        left,
        given_up,
        executions: history.attempts.len(),
        findings,
        injected,
        requests: usage.requests(),
        write_units: usage.write_units,
        seconds: begun.elapsed().as_secs_f64(),
    };
    local.shutdown().await;
    Ok(report)
}

/// Adds the effects in these items of the table to the history.
fn read_effects(items: &[Item], history: &mut History) {
    for Item { id, placed } in items {
        let line = id.strip_prefix(ATTEMPT).map(|of| attempt(Step::Effect, of.split(' ')));
        match (line, schedule::number(id)) {
            (Some(Some(line)), _) => history.committed(&line),
            (None, Some(order)) => history.placed(order, *placed),
            _ => history.offend(Offence::Ledger, format!("an unknown item in the table: {id}")),
        }
    }
}

/// Everything that takes part in a run.
struct Rig<'a> {
    settings: &'a Settings,
    schedule: &'a Schedule,
    local: &'a Local,
    store: &'a Store,
    ledger: Ledger,
    reported: UnboundedReceiver<Line>,
    history: History,
    injector: Injector,
    queues: Queues<'a>,
    begun: usize,
    signalled: HashSet<usize>,
    /// When a message was last acknowledged or dead-lettered.
    moved: Instant,
    /// That was too long ago.
    given_up: bool,
    invocations: u64,
}

impl<'a> Rig<'a> {
    fn new(
        (settings, schedule): (&'a Settings, &'a Schedule),
        (local, store): (&'a Local, &'a Store),
        (ledger, reported): (Ledger, UnboundedReceiver<Line>),
    ) -> Self {
        Self {
            settings,
            schedule,
            local,
            store,
            ledger,
            reported,
            history: History::default(),
            injector: Injector::new(standstill(settings)),
            queues: Queues::new(settings, schedule),
            begun: 0,
            signalled: HashSet::new(),
            moved: Instant::now(),
            given_up: false,
            invocations: 0,
        }
    }

    /// Delivers until no message is left, or none was acknowledged or dead-lettered for the settings' patience.
    async fn drain(&mut self, progress: &impl Fn(usize)) -> Result<(), Error> {
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
                running.push(async move {
                    let event = received.batch.event().to_string();
                    let invocation = local.invoke_bytes(request, event).await;
                    (received, invocation)
                });
            }
            let idle = running.is_empty() && self.queues.left() == 0 && self.injector.is_over();
            // A slow machine may need as long for the first answer, and without one nothing is known of the function.
            let has_answers = self.history.deliveries > 0;
            self.given_up = has_answers && self.moved.elapsed() > self.settings.patience;
            let is_silent = self.settings.template.is_some()
                && self.history.attempts.is_empty()
                && self.history.deliveries > SILENT * self.schedule.messages.len().min(50) as u64;
            if idle || self.given_up || is_silent {
                return Ok(());
            }
            tokio::select! {
                Some((received, invocation)) = running.next() => {
                    self.ended(&received, &invocation?).await?;
                    progress(self.history.dispositions.len());
                }
                Some(line) = self.reported.recv() => self.effect(&line),
                () = tokio::time::sleep(TICK) => self.tick().await?,
            }
        }
    }

    /// Receives a batch, and injects the faults that are scheduled for its new messages.
    fn receive(&mut self) -> Option<Received> {
        let received = self.queues.receive()?;
        let fresh = received.batch.records().filter(|(_, receives)| *receives == 1).count();
        self.inject_store_faults(fresh);
        Some(received)
    }

    /// Injects the faults of the store that are scheduled for these `fresh` messages: store faults are
    /// scheduled by the number of messages received.
    fn inject_store_faults(&mut self, fresh: usize) {
        let (before, now) = (self.begun, self.begun + fresh);
        self.begun = now;
        let due = self.schedule.store_faults.iter();
        for store_fault in due.filter(|store_fault| (before..now).contains(&store_fault.at)) {
            self.injector.store_fault(self.store, store_fault);
        }
    }

    async fn tick(&mut self) -> Result<(), Error> {
        self.read()?;
        for pid in self.injector.tick(self.local, self.store) {
            self.local.read_output().await;
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
        Ok(())
    }

    /// Sends one more copy of each order whose key is still held, as it is after a lost completion.
    /// Returns how many. A key that stays held is stuck.
    fn probe(&mut self) -> Result<usize, Error> {
        self.store.heal_all();
        let rows = self.store.rows()?;
        let held: HashSet<&str> = rows
            .iter()
            .filter(|row| row.status == "INPROGRESS")
            .filter_map(|row| row.key.rsplit('#').next())
            .collect();
        let open = self
            .history
            .orders
            .iter()
            .filter(|(_, order)| order.hashes.iter().any(|hash| held.contains(&**hash)));
        let open: Vec<_> = open.filter_map(|(order, _)| self.schedule.probe(*order)).collect();
        for message in &open {
            self.queues.send(message);
        }
        Ok(open.len())
    }
}

fn request_id(nth: u64) -> String {
    format!("chaos-{nth:08}")
}

impl Rig<'_> {
    async fn ended(&mut self, received: &Received, invocation: &Invocation) -> Result<(), Error> {
        // It may have answered from what another process did, whose effects have to be known then.
        self.local.read_output().await;
        // Lines read from here on belong to the process's next invocation, so read this one's first.
        self.read()?;
        let batch = &received.batch;
        let pid = invocation.pid;
        let stopped = self.injector.was_stopped(pid);
        let end = self.injector.end_of(invocation);
        if end == End::TimedOut {
            self.injector.overran(pid, self.may_run_on(batch));
        }
        let overran = end == End::TimedOut || invocation.duration > self.settings.timeout;
        self.history.ended(invocation, end, stopped, overran);
        let before = self.history.dispositions.len();
        let is_doomed = received.line == queues::Line::Doomed;
        let dispositions = self.queues.dispose(received, &invocation.result);
        for ((id, _), disposition) in batch.records().zip(dispositions) {
            self.look_up(id, disposition)?;
            self.history.delivered(id.unwrap_or_default(), is_doomed, disposition);
        }
        if self.history.dispositions.len() > before {
            self.moved = Instant::now();
        }
        Ok(())
    }

    /// Asks the store whether the order of an acknowledged message is placed, where effects are in transactions.
    fn look_up(&mut self, message: Option<&str>, disposition: Disposition) -> Result<(), Error> {
        let asks = self.settings.mode.commits() && disposition == Disposition::Done;
        if let Some(order) = message.filter(|_| asks).and_then(order_of)
            && !self.history.is_placed(order)
        {
            let times = self.store.placed(order)?;
            self.history.placed(order, times);
        }
        Ok(())
    }

    /// Whether the plan of an order in this batch lets its process run on past the deadline.
    fn may_run_on(&self, batch: &Batch) -> bool {
        let orders = batch.records().filter_map(|(id, _)| order_of(id?));
        let mut plans = orders.filter_map(|order| Some(&self.schedule.orders.get(order)?.plan));
        plans.any(|plan| matches!(plan, Plan::Overrun { left_running: true, .. }))
    }
}

impl Rig<'_> {
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
            && self.signalled.insert(order)
        {
            self.injector.signal(self.local, line.pid, *fault);
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
                self.injector.signal_later(delay, request_id(self.invocations), *fault);
            }
        }
    }
}
