//! Rounds in which each function is invoked in turn, with records of its own.

use serde_json::Value;

use crate::database::Database;
use crate::events::batch;
use crate::options::Options;
use crate::record::Record;
use crate::sample::Sample;
use crate::worker::{Function, Worker};
use crate::{Result, report};

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Records that nobody has seen.
    Fresh,
    /// Records that another process has done.
    FromStore,
    /// Records that the same process has done.
    FromMemory,
    /// Three of ten were done by another process.
    Mixed,
    /// Fresh records, with 5 ms more for each request.
    Delayed,
}

impl Scenario {
    pub(crate) const ALL: [Self; 5] =
        [Self::Fresh, Self::FromStore, Self::FromMemory, Self::Mixed, Self::Delayed];

    /// Its name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::FromStore => "store",
            Self::FromMemory => "memory-duplicates",
            Self::Mixed => "mixed",
            Self::Delayed => "delayed",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Fresh => "New records",
            Self::FromStore => "Duplicates of another process's records",
            Self::FromMemory => "Duplicates of the same process's records",
            Self::Mixed => "Three duplicates in ten records",
            Self::Delayed => "New records, 5 ms more for each request",
        }
    }

    const fn sizes(self) -> &'static [usize] {
        match self {
            Self::FromMemory => &[1, 10, 100, 1000], // a process remembers 1,000 keys
            Self::Mixed => &[10, 100, 1000, 10_000],
            _ => &[1, 10, 100, 1000, 10_000],
        }
    }

    /// Whether another process does this record first.
    const fn is_done_before(self, record: usize) -> bool {
        match self {
            Self::FromStore => true,
            Self::Mixed => record % 10 < 3,
            _ => false,
        }
    }
}

/// How many invocations a round has.
const fn invocations(scenario: Scenario, size: usize) -> usize {
    match size {
        1000 if matches!(scenario, Scenario::FromMemory) => 1,
        1 => 60,
        10 => 30,
        100 => 8,
        1000 => 2,
        _ => 1,
    }
}

/// Measures one scenario with all functions, size by size, and prints a table for each size.
pub(crate) async fn measure(
    scenario: Scenario,
    functions: &[Function],
    options: &Options,
    record: &mut Record,
) -> Result<()> {
    for &size in scenario.sizes() {
        if !options.wants_size(size) {
            continue;
        }
        let database = &mut Database::start(options).await?;
        let mut samples: Vec<(&Function, Vec<Sample>)> = Vec::new();
        let mut workers = Vec::new();
        for function in functions {
            let worker = Worker::start(function, &[], database).await?;
            let other = Worker::start(function, &[], database).await?;
            workers.push((worker, other));
            samples.push((function, Vec::new()));
        }
        // The first round warms up, unless its records are enough for that themselves.
        let first = usize::from(size >= 10_000);
        for round in first..=options.rounds(size) {
            for (nth, (function, samples)) in samples.iter_mut().enumerate() {
                let Some((worker, other)) = workers.get(nth) else { continue };
                let name = format!("{}-{size}-{nth}-{round}", scenario.name());
                match one(scenario, size, &name, (worker, other), database).await {
                    Ok(_) if round == 0 => {}
                    Ok(sample) => samples.push(sample),
                    Err(error) => {
                        record.failure(format!("{}, {name}: {error}", function.name()));
                        let worker = Worker::start(function, &[], database).await?;
                        let other = Worker::start(function, &[], database).await?;
                        if let Some(place) = workers.get_mut(nth) {
                            *place = (worker, other);
                        }
                    }
                }
            }
        }
        report::table(scenario, size, &samples, record);
        for (worker, other) in workers {
            worker.stop().await;
            other.stop().await;
        }
    }
    Ok(())
}

/// One round of one function.
async fn one(
    scenario: Scenario,
    size: usize,
    name: &str,
    (worker, other): (&Worker, &Worker),
    database: &mut Database,
) -> Result<Sample> {
    let invocations = invocations(scenario, size);
    let events: Vec<Value> = (0..invocations)
        .map(|event| batch((0..size).map(move |record| format!("{name}-{event}-{record}"))))
        .collect();
    for (event, whole) in events.iter().enumerate() {
        if scenario == Scenario::FromMemory {
            worker.invoke(whole).await?;
        }
        let done = (0..size).filter(|record| scenario.is_done_before(*record));
        let done: Vec<String> = done.map(|record| format!("{name}-{event}-{record}")).collect();
        if !done.is_empty() {
            other.invoke(&batch(done)).await?;
        }
    }
    let delayed = scenario == Scenario::Delayed;
    database.delay(if delayed { 5 } else { 0 }).await?;
    let sample = worker.measure(&events, invocations * size, database).await;
    database.delay(0).await?;
    sample
}
