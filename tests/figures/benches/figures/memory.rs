//! The peak memory of a process after its batches, and after calls of `run` all at once.

use crate::Result;
use crate::database::Database;
use crate::events::{batch, calls};
use crate::options::Options;
use crate::process::megabytes;
use crate::record::Record;
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

pub(crate) async fn measure(
    functions: &[Function],
    options: &Options,
    record: &mut Record,
) -> Result<()> {
    let database = &mut Database::start(options).await?;
    println!("\nPeak resident memory, and what is anonymous after the last batch, MB\n");
    println!("| | start | 10 | 100 | 1000 | 10,000 | `run`, 1000 |\n|---|--:|--:|--:|--:|--:|--:|");
    for function in functions {
        let mut peaks = Vec::new();
        for (name, size, times, by_run) in WORK {
            if by_run && function.does_nothing() {
                continue;
            }
            let variables: &[&str] = if by_run { &["RUN"] } else { &[] };
            let worker = Worker::start(function, variables, database).await?;
            for time in 0..times {
                let order = |order| format!("{name}-{}-{size}-{time}-{order}", function.name());
                let orders = (0..size).map(order);
                worker.invoke(&if by_run { calls(orders) } else { batch(orders) }).await?;
            }
            let peak = megabytes(worker.pid, "VmHWM")?;
            let anonymous = megabytes(worker.pid, "RssAnon")?;
            record.row(name, size, function, &[("peak_mb", peak)]);
            peaks.push(format!("{peak:.1} ({anonymous:.1})"));
            worker.stop().await;
        }
        println!("| {} | {} |", function.name(), peaks.join(" | "));
    }
    Ok(())
}
