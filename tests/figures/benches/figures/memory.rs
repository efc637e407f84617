//! The peak memory of a process after its batches, and after calls of `run` all at once.

use crate::Result;
use crate::database::Database;
use crate::events::{batch, calls};
use crate::options::Options;
use crate::process::megabytes;
use crate::record::Record;
use crate::sample::median;
use crate::worker::{Function, Worker};

/// How many records at a time, how often, and whether by `run`.
const WORK: [(&str, usize, usize, bool); 6] = [
    ("peak", 0, 0, false),
    ("peak", 10, 100, false),
    ("peak", 100, 30, false),
    ("peak", 1000, 3, false),
    ("peak", 10_000, 1, false),
    ("peak-run", 1000, 3, true),
];

/// Of a new process for each cell. Peaks of the same work differ by some hundred kilobytes.
const ROUNDS: usize = 3;

pub(crate) async fn measure(
    functions: &[Function],
    options: &Options,
    record: &mut Record,
) -> Result<()> {
    let database = &mut Database::start(options).await?;
    println!("\nPeak resident memory, and what is anonymous after the last batch, MB\n");
    println!("| | start | 10 | 100 | 1000 | 10,000 | `run`, 1000 |\n|---|--:|--:|--:|--:|--:|--:|");
    for function in functions {
        let mut cells = Vec::new();
        for work in WORK {
            let (name, size, _, by_run) = work;
            if by_run && function.does_nothing() {
                continue;
            }
            let (mut peaks, mut anonymous) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                let after = one(function, work, round, database).await?;
                peaks.push(after.peak);
                anonymous.push(after.anonymous);
            }
            let (peak, anonymous) = (median(peaks), median(anonymous));
            record.row(name, size, function, &[("peak_mb", peak)]);
            cells.push(format!("{peak:.1} ({anonymous:.1})"));
        }
        println!("| {} | {} |", function.name(), cells.join(" | "));
    }
    Ok(())
}

/// Resident memory of a process, in MB.
struct Resident {
    peak: f64,
    anonymous: f64,
}

/// Lets a new process do this work.
async fn one(
    function: &Function,
    (name, size, times, by_run): (&str, usize, usize, bool),
    round: usize,
    database: &mut Database,
) -> Result<Resident> {
    let variables: &[&str] = if by_run { &["RUN"] } else { &[] };
    let worker = Worker::start(function, variables, database).await?;
    for time in 0..times {
        let order = |order| format!("{name}-{}-{round}-{size}-{time}-{order}", function.name());
        let orders = (0..size).map(order);
        worker.invoke(&if by_run { calls(orders) } else { batch(orders) }).await?;
    }
    let (peak, anonymous) = (megabytes(worker.pid, "VmHWM")?, megabytes(worker.pid, "RssAnon")?);
    worker.stop().await;
    Ok(Resident { peak, anonymous })
}
