//! For how long a completion is missing: from the handler's return until the database has it. A worker that
//! dies in this window leaves an effect without a completion.

use crate::Result;
use crate::database::Database;
use crate::events::batch;
use crate::options::Options;
use crate::record::Record;
use crate::sample::share;
use crate::worker::{Function, Worker};

/// Of large batches in a round: otherwise the longest window would be that of one batch.
const FEWEST: usize = 5;

pub(crate) async fn measure(
    functions: &[Function],
    options: &Options,
    record: &mut Record,
) -> Result<()> {
    for size in [1, 10, 100, 1000] {
        let database = &mut Database::start(options).await?;
        let mut rows = Vec::new();
        for function in functions.iter().filter(|function| !function.does_nothing()) {
            rows.push((function, Worker::start(function, &["STAMP"], database).await?, Vec::new()));
        }
        for round in 0..=options.rounds(size) {
            for (nth, (_, worker, windows)) in rows.iter_mut().enumerate() {
                database.usage(worker.proxy).await?;
                for event in 0..(100 / size).max(FEWEST) {
                    let name = |record| format!("window-{size}-{nth}-{round}-{event}-{record}");
                    worker.invoke(&batch((0..size).map(name))).await?;
                }
                let seen = database.windows(worker.proxy).await?;
                if round > 0 {
                    windows.extend(seen.into_iter().map(|micros| micros as f64 / 1000.0));
                }
            }
        }
        println!("\nFrom the handler's return to its completion, ms, {size} at a time\n");
        println!("| | completions | p50 | p99 | max |\n|---|--:|--:|--:|--:|");
        for (function, worker, windows) in rows {
            let of = |part| share(windows.iter().copied(), part);
            let (completions, p50, p99, max) = (windows.len(), of(0.5), of(0.99), of(1.0));
            let values = [
                ("completions", completions as f64),
                ("window_p50_ms", p50),
                ("window_p99_ms", p99),
                ("window_max_ms", max),
            ];
            record.row("window", size, function, &values);
            println!("| {} | {completions} | {p50:.2} | {p99:.2} | {max:.2} |", function.name());
            worker.stop().await;
        }
    }
    Ok(())
}
