//! The tables, as Markdown.

use crate::record::Record;
use crate::rounds::Scenario;
use crate::sample::{MEASURES, Sample, median};
use crate::worker::Function;

/// The head of a table.
pub(crate) const HEAD: &str = "| | CPU us / record | x by hand | switches / record | requests / record | write units | read units | \
     connections | p50 ms | of it the table's |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

/// A row for each function: medians over its rounds, and of the ratios within each round.
pub(crate) fn table(
    scenario: Scenario,
    size: usize,
    rows: &[(&Function, Vec<Sample>)],
    record: &mut Record,
) {
    println!("\n{}, {size} at a time\n", scenario.title());
    println!("{HEAD}");
    for (function, samples) in rows {
        let of = |field: fn(&Sample) -> f64| median(samples.iter().map(field));
        let by_hand = rows.iter().find(|(other, _)| function.is_beside(other));
        let by_hand = by_hand.map_or(&[][..], |(_, samples)| samples);
        let ratios =
            samples.iter().zip(by_hand).map(|(own, hand)| own.cpu_micros / hand.cpu_micros);
        let ratio = median(ratios);
        let mut values: Vec<_> = MEASURES.iter().map(|(name, field)| (*name, of(*field))).collect();
        values.push(("x_by_hand", ratio));
        values.push(("x_table", of(|sample| sample.beside_table)));
        record.row(scenario.name(), size, function, &values);
        println!("{}", row(function, samples, ratio));
    }
}

/// A row: medians, and the ratio to the function by hand.
pub(crate) fn row(function: &Function, samples: &[Sample], ratio: f64) -> String {
    let of = |field: fn(&Sample) -> f64| median(samples.iter().map(field));
    format!(
        "| {} | {:.0} | {ratio:.2} | {:.2} | {:.3} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} |",
        function.name(),
        of(|sample| sample.cpu_micros),
        of(|sample| sample.switches),
        of(|sample| sample.requests),
        of(|sample| sample.write_units),
        of(|sample| sample.read_units),
        of(|sample| sample.connections),
        of(|sample| sample.millis),
        of(|sample| sample.table_millis),
    )
}
