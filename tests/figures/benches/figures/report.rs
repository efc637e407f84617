//! The tables, as Markdown.

use crate::sample::{Sample, median};
use crate::worker::Function;

/// A row for each function: medians over its rounds, and of the ratios within each round.
pub(crate) fn table(title: &str, rows: &[(&Function, Vec<Sample>)]) {
    println!("\n{title}\n");
    println!(
        "| | CPU us / record | x by hand | switches / record | requests / record | write units | read units | \
         connections | p50 ms |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for (function, samples) in rows {
        let of = |field: fn(&Sample) -> f64| median(samples.iter().map(field));
        let by_hand = rows.iter().find(|(other, _)| other.name == function.by_hand());
        let by_hand = by_hand.map_or(&[][..], |(_, samples)| samples);
        let ratios =
            samples.iter().zip(by_hand).map(|(own, hand)| own.cpu_micros / hand.cpu_micros);
        println!(
            "| {} | {:.0} | {:.2} | {:.2} | {:.3} | {:.2} | {:.2} | {:.0} | {:.1} |",
            function.name,
            of(|sample| sample.cpu_micros),
            median(ratios),
            of(|sample| sample.switches),
            of(|sample| sample.requests),
            of(|sample| sample.write_units),
            of(|sample| sample.read_units),
            of(|sample| sample.connections),
            of(|sample| sample.millis),
        );
    }
}
