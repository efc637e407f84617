//! What one round of one function showed, and medians of that.

use std::time::Duration;

use crate::database::Usage;

/// Per record, but for the connections and the duration.
pub(crate) struct Sample {
    pub(crate) cpu_micros: f64,
    pub(crate) switches: f64,
    pub(crate) requests: f64,
    pub(crate) write_units: f64,
    pub(crate) read_units: f64,
    /// All connections that the process had opened by the end.
    pub(crate) connections: f64,
    /// The median of its invocations, in milliseconds.
    pub(crate) millis: f64,
    /// For how long the table was answering requests, in the mean of its invocations, in milliseconds.
    pub(crate) table_millis: f64,
    /// The duration of all invocations, as a multiple of the time in which the table was answering.
    pub(crate) beside_table: f64,
}

impl Sample {
    pub(crate) fn new(
        records: f64,
        (cpu, switches): (f64, f64),
        (before, after): (Usage, Usage),
        writes_alone: bool,
        took: Vec<Duration>,
    ) -> Self {
        let written = after.write_units - before.write_units;
        // DynamoDB bills a refused write as a unit. The embedded one says nothing if all of a request are refused.
        let is_silent = writes_alone || written == 0.0;
        let refused = if is_silent { (after.refused - before.refused) as f64 } else { 0.0 };
        let answering = after.answering_ms - before.answering_ms;
        let all_took = took.iter().sum::<Duration>().as_secs_f64() * 1000.0;
        Self {
            cpu_micros: cpu / records,
            switches: switches / records,
            requests: (after.requests - before.requests) as f64 / records,
            write_units: (written + refused) / records,
            read_units: (after.read_units - before.read_units) / records,
            connections: after.connections as f64,
            table_millis: answering / took.len() as f64,
            beside_table: all_took / answering,
            millis: median(took.iter().map(|took| took.as_secs_f64() * 1000.0)),
        }
    }
}

/// A column, and what it has of a sample.
type Measure = (&'static str, fn(&Sample) -> f64);

/// What is recorded of the samples of a function, but for the ratio.
pub(crate) const MEASURES: [Measure; 8] = [
    ("cpu_us", |sample| sample.cpu_micros),
    ("switches", |sample| sample.switches),
    ("requests", |sample| sample.requests),
    ("write_units", |sample| sample.write_units),
    ("read_units", |sample| sample.read_units),
    ("connections", |sample| sample.connections),
    ("p50_ms", |sample| sample.millis),
    ("table_ms", |sample| sample.table_millis),
];

pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    share(values, 0.5)
}

/// The value below which this share of them lies.
pub(crate) fn share(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let position = ((last as f64) * share).round() as usize;
    sorted.get(position).copied().unwrap_or(f64::NAN)
}
