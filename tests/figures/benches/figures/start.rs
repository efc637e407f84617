//! The processor time of a start, until the process asks for its first event. With 128 MB, Lambda gives a
//! function about a fourteenth of a processor.

use crate::Result;
use crate::database::Database;
use crate::options::Options;
use crate::process::Counts;
use crate::record::Record;
use crate::sample::{median, share};
use crate::worker::{Function, Worker};

pub(crate) async fn measure(
    functions: &[Function],
    options: &Options,
    record: &mut Record,
) -> Result<()> {
    let database = &mut Database::start(options).await?;
    let mut rows: Vec<(&Function, Vec<f64>)> =
        functions.iter().map(|function| (function, Vec::new())).collect();
    for _ in 0..options.rounds(1) * 4 {
        for (function, starts) in &mut rows {
            let worker = Worker::start_only(function, database).await?;
            let (micros, _) = Counts::of(worker.pid)?.since(&Counts::default());
            starts.push(micros / 1000.0);
            worker.stop().await;
        }
    }
    println!("\nProcessor time until the first poll, ms\n");
    println!("| | best | median |\n|---|--:|--:|");
    for (function, starts) in rows {
        let (best, median) = (share(starts.iter().copied(), 0.0), median(starts));
        record.row("start", 0, function, &[("start_best_ms", best), ("start_ms", median)]);
        println!("| {} | {best:.1} | {median:.1} |", function.name());
    }
    Ok(())
}
