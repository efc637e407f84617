//! The peak memory of a process after its batches.

use crate::Result;
use crate::database::Database;
use crate::events::batch;
use crate::process::peak_megabytes;
use crate::worker::{Function, Worker};

pub(crate) async fn measure(functions: &[Function], database: &mut Database) -> Result<()> {
    println!("\nPeak resident memory, MB\n");
    println!("| | start | 100 batches of 10 | 3 batches of 1000 |\n|---|--:|--:|--:|");
    for function in functions {
        let mut peaks = Vec::new();
        for (size, batches) in [(1, 0), (10, 100), (1000, 3)] {
            let worker = Worker::start(function, &[], database).await?;
            for number in 0..batches {
                let name = |record| format!("memory-{}-{size}-{number}-{record}", function.name);
                worker.invoke(&batch((0..size).map(name))).await?;
            }
            peaks.push(peak_megabytes(worker.pid)?);
            worker.stop().await;
        }
        let peaks: Vec<String> = peaks.iter().map(|peak| format!("{peak:.1}")).collect();
        println!("| {} | {} |", function.name, peaks.join(" | "));
    }
    Ok(())
}
