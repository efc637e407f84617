//! The tables of the page, and the sentence that says where they are from.

use super::measured::Measured;
use super::{aims, dollars, instructions};

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
        ("latency", latency(measured)),
        ("window", window(measured)),
        ("calls", calls(measured)),
        ("memory", memory(measured)),
        ("start", start(measured)),
        ("instructions", instructions::ways()),
        ("parts", instructions::parts()),
        ("parts-of-each", instructions::parts_of_each()),
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

pub(crate) fn row(first: &str, cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {first} | {} |\n", cells.join(" | "))
}

pub(crate) fn head(columns: &[&str]) -> String {
    format!("| {} |\n|---|{}\n", columns.join(" | "), "--:|".repeat(columns.len() - 1))
}

/// Processor time of new records.
fn processor(measured: &Measured) -> String {
    let mut table = head(&[
        "records at a time",
        "floor, one",
        "by hand, one",
        "this, one",
        "floor, several",
        "by hand, several",
        "this, several",
    ]);
    for size in SIZES {
        let cells = THREADS.iter().flat_map(|threads| {
            ["floor", "by hand", "this"]
                .map(|name| digits(measured.get("fresh", size, name, threads, "cpu_us")))
        });
        table.push_str(&row(&grouped(&size.to_string()), cells));
    }
    table
}

/// A row for each scenario, with a cell for each number of records at a time.
fn by_size(mut table: String, cells: impl Fn(&str, usize) -> String) -> String {
    for (scenario, name) in SCENARIOS {
        let cells = SIZES.map(|size| {
            if sizes(scenario).contains(&size) { cells(scenario, size) } else { String::new() }
        });
        table.push_str(&row(name, cells));
    }
    table
}

/// Ours beside the function by hand, for each scenario.
fn ratios(measured: &Measured) -> String {
    by_size(head(&["records at a time", "1", "10", "100", "1,000", "10,000"]), |scenario, size| {
        format!("{:.2}", measured.get(scenario, size, "this", "one", "x_by_hand"))
    })
}

/// Requests of ours and of the function by hand.
fn requests(measured: &Measured) -> String {
    by_size(head(&["records at a time", "1", "10", "100", "1,000", "10,000"]), |scenario, size| {
        let of = |function| digits(measured.get(scenario, size, function, "one", "requests"));
        format!("{} / {}", of("this"), of("by hand"))
    })
}

/// The duration of an invocation with slower requests.
fn latency(measured: &Measured) -> String {
    let mut table = head(&["records at a time", "by hand", "this library"]);
    for size in SIZES {
        let cells = ["by hand", "this"]
            .map(|name| digits(measured.get("delayed", size, name, "one", "p50_ms")));
        table.push_str(&row(&grouped(&size.to_string()), cells));
    }
    table
}

/// From the handler's return to the completion.
fn window(measured: &Measured) -> String {
    let mut table =
        head(&["records at a time", "p50", "p99", "longest", "by hand: p50", "p99", "longest"]);
    for size in [1, 10, 100, 1000] {
        let mut cells = Vec::new();
        for function in ["this", "by hand"] {
            for column in ["window_p50_ms", "window_p99_ms", "window_max_ms"] {
                cells.push(digits(measured.get("window", size, function, "one", column)));
            }
        }
        table.push_str(&row(&grouped(&size.to_string()), cells));
    }
    table
}

/// A thousand pieces of work at once.
fn calls(measured: &Measured) -> String {
    let mut table =
        head(&["", "duration, ms", "requests for each", "processor, us", "connections"]);
    for (name, function) in [
        ("a batch of SQS", "batch"),
        ("one call of `run_many`", "run_many"),
        ("1,000 calls of `run`", "run"),
    ] {
        let of = |column| digits(measured.get("calls", 1000, function, "one", column));
        table.push_str(&row(name, ["p50_ms", "requests", "cpu_us", "connections"].map(of)));
    }
    table
}

/// Peak memory.
fn memory(measured: &Measured) -> String {
    let mut table = head(&["after", "floor", "by hand", "this library"]);
    let work = [
        (0, "the start"),
        (10, "batches of 10"),
        (100, "batches of 100"),
        (1000, "batches of 1,000"),
        (10_000, "a batch of 10,000"),
    ];
    for (size, name) in work {
        let cells = ["floor", "by hand", "this"]
            .map(|function| digits(measured.get("peak", size, function, "one", "peak_mb")));
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
