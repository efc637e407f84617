//! Carries out a run: serves the queues, the processes and the ledger in one loop.

mod rig;

use std::time::Instant;

use lambda_idempotency_local::Disposition;
use tokio::sync::mpsc::unbounded_channel;

use self::rig::Rig;
use crate::{
    Error, Report, Settings,
    audit::{Expected, audit},
    history::{History, Offence},
    ledger::{Ledger, Step, attempt},
    processes::start,
    schedule::{self, Schedule},
    store::{Item, Store},
};

/// Runs until every message is acknowledged or dead-lettered, or no message was settled for
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
    let settled =
        |what| history.settled.values().filter(|disposition| **disposition == what).count();
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
        acknowledged: settled(Disposition::Done),
        dead_lettered: settled(Disposition::DeadLettered),
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

/// The beginning of the key of an attempt's item.
const ATTEMPT: &str = "attempt ";

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
