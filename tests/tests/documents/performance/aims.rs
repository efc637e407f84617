//! What the project aims at, and whether it is met.

use super::measured::Measured;

struct Aim {
    what: &'static str,
    /// Scenario, records at a time, column.
    figure: (&'static str, usize, &'static str),
    most: f64,
    /// The figure is divided by that of the function by hand.
    is_relative: bool,
}

type Figure = (&'static str, usize, &'static str);

const fn aim(what: &'static str, figure: Figure, most: f64) -> Aim {
    Aim { what, figure, most, is_relative: false }
}

const fn by_hand(what: &'static str, figure: Figure, most: f64) -> Aim {
    Aim { what, figure, most, is_relative: true }
}

/// Of the function on one thread.
const AIMS: [Aim; 12] = [
    by_hand("batch of one: processor time, by hand = 1", ("fresh", 1, "cpu_us"), 1.05),
    by_hand("batch of 10: processor time, by hand = 1", ("fresh", 10, "cpu_us"), 0.25),
    by_hand("batch of 100: processor time, by hand = 1", ("fresh", 100, "cpu_us"), 0.17),
    by_hand("batch of 1,000: processor time, by hand = 1", ("fresh", 1000, "cpu_us"), 0.12),
    aim("10 duplicates known to the table: processor time, us", ("store", 10, "cpu_us"), 120.0),
    aim(
        "10 duplicates known to the process: processor time, us",
        ("memory-duplicates", 10, "cpu_us"),
        40.0,
    ),
    aim("batch of 1,000: requests for a record", ("fresh", 1000, "requests"), 0.1),
    aim(
        "batch of 10 with 5 ms more a request: duration, as a multiple of the table's time",
        ("delayed", 10, "x_table"),
        1.1,
    ),
    aim("batch of 100 with 5 ms more a request: duration, ms", ("delayed", 100, "p50_ms"), 30.0),
    aim("batches of 10: peak memory, MB", ("peak", 10, "peak_mb"), 12.0),
    aim("batches of 1,000: peak memory, MB", ("peak", 1000, "peak_mb"), 15.0),
    by_hand("start: processor time, by hand = 1", ("start", 0, "start_ms"), 0.7),
];

/// How many are met, and those that are not.
pub(crate) fn table(measured: &Measured) -> String {
    let mut missed = String::new();
    let mut met = 0;
    for Aim { what, figure: (scenario, records, column), most, is_relative } in AIMS {
        let of = |function| measured.get(scenario, records, function, "one", column);
        let value = if is_relative { of("this") / of("by hand") } else { of("this") };
        if value <= most {
            met += 1;
        } else {
            missed.push_str(&format!("| {what} | {most} | {} |\n", super::tables::digits(value)));
        }
    }
    if !missed.is_empty() {
        missed
            .insert_str(0, ", and these are missed:\n\n| | at most | measured |\n|---|--:|--:|\n");
    }
    let of_table = measured.get("delayed", 100, "this", "one", "table_ms");
    let of_table = super::tables::digits(of_table);
    format!(
        "{met} of {} aims on one thread are met{missed}\nOf the duration of the batch of 100, {of_table} ms are the embedded \
         table's, on the same processors.\n",
        AIMS.len()
    )
}
