//! The tables of the page, and the sentence that says where they are from.

use super::measured::Measured;
use super::{aims, dollars};

const SIZES: [usize; 5] = [1, 10, 100, 1000, 10_000];
const THREADS: [&str; 2] = ["one", "several"];
/// Scenarios, as the page names them.
const SCENARIOS: [(&str, &str); 4] = [
    ("fresh", "new"),
    ("store", "duplicates, known to the table"),
    ("memory-duplicates", "duplicates, known to this process"),
    ("mixed", "three duplicates in ten"),
];

/// Each block of the page: its name, and its text.
pub(crate) fn all(measured: &Measured, peers: &Measured) -> Vec<(&'static str, String)> {
    vec![
        ("about", format!("Measured by {}.\n", measured.about)),
        ("aims", aims::table(measured)),
        ("processor", processor(measured)),
        ("ratios", ratios(measured)),
        ("requests", requests(measured)),
        ("together", together(measured)),
        ("latency", latency(measured)),
        ("window", window(measured)),
        ("memory", memory(measured)),
        ("start", start(measured)),
        ("dollars", dollars::table(measured, peers)),
        ("peers", format!("Measured with {}.\n", peers.about)),
    ]
}

/// How many records at a time a scenario was measured with.
fn sizes(scenario: &str) -> &'static [usize] {
    match scenario {
        "memory-duplicates" => &[1, 10, 100, 1000],
        "mixed" => &[10, 100, 1000, 10_000],
        _ => &SIZES,
    }
}

/// Three digits that count; whole numbers from 100 on.
pub(crate) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    grouped(text)
}

/// 12345 as 12,345.
pub(crate) fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let groups: Vec<_> = whole.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",") + rest
}

fn row(first: &str, cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {first} | {} |\n", cells.join(" | "))
}

fn head(columns: &[&str]) -> String {
    format!("| {} |\n|---|{}\n", columns.join(" | "), "--:|".repeat(columns.len() - 1))
}

/// The functions on each runtime, as columns.
fn columns(first: &str, functions: &[&'static str]) -> (String, Vec<(&'static str, &'static str)>) {
    let mut names = vec![first.to_owned()];
    let mut columns = Vec::new();
    for threads in THREADS {
        for function in functions {
            names.push(format!("{function}, {threads}"));
            columns.push((*function, threads));
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (head(&names), columns)
}

/// Processor time of new records.
fn processor(measured: &Measured) -> String {
    let (mut table, columns) = columns("records at a time", &["floor", "by hand", "this"]);
    for size in SIZES {
        let cells = columns.iter().map(|(function, threads)| {
            digits(measured.get("fresh", size, function, threads, "cpu_us"))
        });
        table.push_str(&row(&grouped(&size.to_string()), cells));
    }
    table
}

/// Ours beside the function by hand, for each scenario.
fn ratios(measured: &Measured) -> String {
    let mut table = head(&["records", "at a time", "one thread", "several threads"]);
    for (scenario, name) in SCENARIOS {
        for size in sizes(scenario) {
            let ratio = |threads| measured.get(scenario, *size, "this", threads, "x_by_hand");
            let ratios = THREADS.map(|threads| format!("{:.2}", ratio(threads)));
            table.push_str(&row(name, [grouped(&size.to_string())].into_iter().chain(ratios)));
        }
    }
    table
}

/// Requests and units.
fn requests(measured: &Measured) -> String {
    let mut table =
        head(&["records", "at a time", "requests", "by hand", "write units", "read units"]);
    for (scenario, name) in SCENARIOS {
        for size in sizes(scenario) {
            let of =
                |function, column| digits(measured.get(scenario, *size, function, "one", column));
            let cells = [
                grouped(&size.to_string()),
                of("this", "requests"),
                of("by hand", "requests"),
                of("this", "write_units"),
                of("this", "read_units"),
            ];
            table.push_str(&row(name, cells));
        }
    }
    table
}

/// Connections of a process, and context switches for a record.
fn together(measured: &Measured) -> String {
    let mut table = head(&[
        "new records at a time",
        "connections",
        "by hand",
        "switches, one thread",
        "by hand",
        "switches, several threads",
        "by hand",
    ]);
    for size in SIZES {
        let columns = [("connections", "one"), ("switches", "one"), ("switches", "several")];
        let cells = columns.iter().flat_map(|(column, threads)| {
            let of = |function| digits(measured.get("fresh", size, function, threads, column));
            ["this", "by hand"].map(of)
        });
        table.push_str(&row(&grouped(&size.to_string()), cells));
    }
    table
}

/// The duration of an invocation with slower requests.
fn latency(measured: &Measured) -> String {
    let mut table = head(&[
        "records at a time",
        "by hand, one",
        "of it the table",
        "this, one",
        "of it the table",
        "by hand, several",
        "this, several",
    ]);
    for size in SIZES {
        let of = |function, threads, column| {
            digits(measured.get("delayed", size, function, threads, column))
        };
        let cells = [
            of("by hand", "one", "p50_ms"),
            of("by hand", "one", "table_ms"),
            of("this", "one", "p50_ms"),
            of("this", "one", "table_ms"),
            of("by hand", "several", "p50_ms"),
            of("this", "several", "p50_ms"),
        ];
        table.push_str(&row(&grouped(&size.to_string()), cells));
    }
    table
}

/// From the handler's return to the completion.
fn window(measured: &Measured) -> String {
    let mut table = head(&[
        "records at a time",
        "completions",
        "p50",
        "p99",
        "longest",
        "by hand: p50",
        "p99",
        "longest",
    ]);
    for size in [1, 10, 100, 1000] {
        let mut cells = vec![digits(measured.get("window", size, "this", "one", "completions"))];
        for function in ["this", "by hand"] {
            for column in ["window_p50_ms", "window_p99_ms", "window_max_ms"] {
                cells.push(digits(measured.get("window", size, function, "one", column)));
            }
        }
        table.push_str(&row(&grouped(&size.to_string()), cells));
    }
    table
}

/// Peak memory.
fn memory(measured: &Measured) -> String {
    let (mut table, columns) = columns("after", &["floor", "by hand", "this"]);
    let work = [
        ("peak", 0, "the start"),
        ("peak", 10, "batches of 10"),
        ("peak", 100, "batches of 100"),
        ("peak", 1000, "batches of 1,000"),
        ("peak", 10_000, "a batch of 10,000"),
    ];
    for (scenario, size, name) in work {
        let cells = columns.iter().map(|(function, threads)| match (scenario, *function) {
            ("peak-run", "floor") => String::new(),
            _ => digits(measured.get(scenario, size, function, threads, "peak_mb")),
        });
        table.push_str(&row(name, cells));
    }
    table
}

/// Processor time of a start.
fn start(measured: &Measured) -> String {
    let mut table = head(&["function", "best", "median"]);
    for (name, function) in [("floor", "floor"), ("by hand", "by hand"), ("this library", "this")] {
        let of = |column| digits(measured.get("start", 0, function, "one", column));
        table.push_str(&row(name, [of("start_best_ms"), of("start_ms")]));
    }
    table
}

#[test]
fn digits_that_count() {
    for (value, text) in [
        (12_345.4, "12,345"),
        (536.2, "536"),
        (14.04, "14"),
        (14.06, "14.1"),
        (0.08, "0.08"),
        (2.0, "2"),
    ] {
        assert_eq!(digits(value), text);
    }
}
