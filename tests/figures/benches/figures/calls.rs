//! A thousand pieces of work at once: a batch, one call of `run_many`, and a call of `run` for each.

use crate::database::Database;
use crate::events::{batch, orders};
use crate::options::Options;
use crate::record::Record;
use crate::sample::{MEASURES, median};
use crate::worker::{Function, Worker};
use crate::{Result, report};

const SIZE: usize = 1000;
/// How much longer each request takes, in milliseconds.
const LONGER: u64 = 5;

pub(crate) async fn measure(options: &Options, record: &mut Record) -> Result<()> {
    let database = &mut Database::start(options).await?;
    let mut rows = Vec::new();
    for function in Function::of_calls(options) {
        let worker = Worker::start(&function, &[], database).await?;
        rows.push((function, worker, Vec::new()));
    }
    for round in 0..=options.rounds(SIZE) {
        for (function, worker, samples) in &mut rows {
            let names = (0..SIZE).map(|nth| format!("calls-{}-{round}-{nth}", function.label));
            let event = if function.is_of_batches() { batch(names) } else { orders(names) };
            database.delay(LONGER).await?;
            let sample = worker.measure(&[event], SIZE, database).await;
            database.delay(0).await?;
            let sample = sample?;
            // The first round warms up.
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    println!(
        "\n{SIZE} pieces of work at once, {LONGER} ms more for each request\n\n{}",
        report::HEAD
    );
    for (function, worker, samples) in rows {
        let of = |field: fn(&_) -> f64| median(samples.iter().map(field));
        let values: Vec<_> = MEASURES.iter().map(|(name, field)| (*name, of(*field))).collect();
        record.row("calls", SIZE, &function, &values);
        println!("{}", report::row(&function, &samples, f64::NAN));
        worker.stop().await;
    }
    Ok(())
}
