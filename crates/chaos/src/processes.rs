//! Starts the function's processes, and reads what they report on their output.

use std::time::Duration;

use lambda_idempotency_local::{EffectLine, FunctionConfig, Local, LocalBuilder, Table};
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    error::Error,
    kinds::Mode,
    ledger::{Ledger, Line, Step},
    schedule::{self, Schedule, order_of},
    settings::Settings,
    store::{CLAIMS, KEY, ORDERS, Store},
};

/// A process that was killed needs a new one; a machine may be slow to start it.
const INIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts the function of these settings. Effects that it reports are sent to `effects`.
pub(crate) async fn start(
    settings: &Settings,
    (schedule, store): (&Schedule, &Store),
    ledger: &Ledger,
    effects: UnboundedSender<Line>,
) -> Result<Local, Error> {
    let mut function = FunctionConfig::new(&settings.binary)
        .name("orders")
        .timeout(settings.timeout)
        .init_timeout(INIT_TIMEOUT)
        // A stopped process must be able to continue; the rig kills the other processes itself.
        .outlives_timeout(true)
        .env("IDEMPOTENCY_TABLE", CLAIMS)
        .env("ORDERS_TABLE", ORDERS)
        .env("IDEMPOTENCY_REPORT_EFFECTS", "1")
        .env("SCRIPTED_LEDGER", ledger.path().to_string_lossy())
        .env_each("SCRIPTED_CLOCK_SKEW_MS", schedule.skews.iter().map(ToString::to_string));
    let commits = settings.mode.commits();
    let modes = [
        ("SCRIPTED_TRANSACTION", commits),
        ("SCRIPTED_OPTIMISTIC", settings.mode == Mode::Optimistic),
        ("SCRIPTED_STEPS", settings.mode == Mode::Steps),
    ];
    for (name, _) in modes.iter().filter(|(_, is_set)| *is_set) {
        function = function.env(*name, "1");
    }
    for (name, value) in &settings.env {
        function = function.env(name, value);
    }
    let local = Local::builder(function)
        .dynamodb(store.dynamodb.clone())
        .table(Table::new(CLAIMS, "id").ttl("expiration"))
        .sandboxes(settings.processes)
        .on_output(move |line| {
            if let Some(effect) = EffectLine::parse(&line.text) {
                // The rig reads until it ends.
                let _ = effects.send(reported(effect, line.pid));
            }
        });
    let local = if commits { local.table(Table::new(ORDERS, KEY)) } else { local };
    let local = settings.tables.iter().cloned().fold(local, LocalBuilder::table);
    let local = local.start().await?;
    // A function that cannot start would be started again for every delivery.
    local.warm().await?;
    Ok(local)
}

fn reported(effect: EffectLine, pid: u32) -> Line {
    let order = order_of(&effect.record).map(schedule::id).unwrap_or_default();
    let (message, name) = (effect.record, effect.name);
    let fence = effect.fence.unwrap_or_default();
    Line { step: Step::Effect, order, message, pid, fence, name }
}
