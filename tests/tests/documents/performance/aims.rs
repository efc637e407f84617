//! What the project aims at, and whether it is met.

use super::measured::Measured;

struct Aim {
    what: &'static str,
    /// Scenario, records at a time, column.
    figure: (&'static str, usize, &'static str),
    most: f64,
}

/// Of the function on one thread.
const AIMS: [Aim; 8] = [
    Aim {
        what: "processor time of a batch of one, by hand = 1",
        figure: ("fresh", 1, "x_by_hand"),
        most: 1.0,
    },
    Aim {
        what: "processor time of a batch of ten, by hand = 1",
        figure: ("fresh", 10, "x_by_hand"),
        most: 1.0,
    },
    Aim {
        what: "requests for a record of a batch of 1,000",
        figure: ("fresh", 1000, "requests"),
        most: 0.1,
    },
    Aim {
        what: "peak memory after batches of 1,000, MB",
        figure: ("peak", 1000, "peak_mb"),
        most: 16.0,
    },
    Aim {
        what: "1,000 calls of `run` at once: requests for a call",
        figure: ("calls", 1000, "requests"),
        most: 0.1,
    },
    Aim {
        what: "1,000 calls of `run` at once: processor time of a call, us",
        figure: ("calls", 1000, "cpu_us"),
        most: 100.0,
    },
    Aim {
        what: "1,000 calls of `run` at once: connections",
        figure: ("calls", 1000, "connections"),
        most: 16.0,
    },
    Aim {
        what: "1,000 calls of `run` at once: peak memory, MB",
        figure: ("peak-run", 1000, "peak_mb"),
        most: 25.0,
    },
];

pub(crate) fn table(measured: &Measured) -> String {
    let mut table = String::from("| on one thread | at most | measured | |\n|---|--:|--:|---|\n");
    for Aim { what, figure: (scenario, records, column), most } in AIMS {
        let value = measured.get(scenario, records, "this", "one", column);
        let met = if value <= most { "met" } else { "**missed**" };
        table
            .push_str(&format!("| {what} | {most} | {} | {met} |\n", super::tables::digits(value)));
    }
    table
}

#[test]
fn a_missed_aim_is_called_missed() {
    let (measured, _) = super::measured();
    let of = |value| table(&measured.with("calls", 1000, "this", "one", "connections", value));
    assert!(of(16.0).contains("connections | 16 | 16 | met |"));
    assert!(of(17.0).contains("connections | 16 | 17 | **missed** |"));
}
