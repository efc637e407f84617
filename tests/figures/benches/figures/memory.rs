//! The peak memory of a process after its batches.

use crate::Result;
use crate::database::Database;
use crate::events::batch;
use crate::options::Options;
use crate::process::megabytes;
use crate::record::Record;
use crate::sample::median;
use crate::worker::{Function, Worker};

/// How many records at a time, and how often.
const WORK: [(usize, usize); 5] = [(0, 0), (10, 100), (100, 30), (1000, 3), (10_000, 1)];

/// Of a new process for each cell. Peaks of the same work differ by some hundred kilobytes.
const ROUNDS: usize = 3;

pub(crate) async fn measure(
    functions: &[Function],
    options: &Options,
    record: &mut Record,
) -> Result<()> {
    let database = &mut Database::start(options).await?;
    println!("\nPeak resident memory, and what is anonymous after the last batch, MB\n");
    println!("| | start | 10 | 100 | 1000 | 10,000 |\n|---|--:|--:|--:|--:|--:|");
    for function in functions {
        let mut cells = Vec::new();
        for work in WORK {
            let (mut peaks, mut anonymous) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                let after = one(function, work, round, database).await?;
                peaks.push(after.peak);
                anonymous.push(after.anonymous);
            }
            let (peak, anonymous) = (median(peaks), median(anonymous));
            record.row("peak", work.0, function, &[("peak_mb", peak)]);
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
    (size, times): (usize, usize),
    round: usize,
    database: &mut Database,
) -> Result<Resident> {
    let worker = Worker::start(function, &[], database).await?;
    for time in 0..times {
        let order = |order| format!("peak-{}-{round}-{size}-{time}-{order}", function.name());
        worker.invoke(&batch((0..size).map(order))).await?;
    }
    let (peak, anonymous) = (megabytes(worker.pid, "VmHWM")?, megabytes(worker.pid, "RssAnon")?);
    worker.stop().await;
    Ok(Resident { peak, anonymous })
}
