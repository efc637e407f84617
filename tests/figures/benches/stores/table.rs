//! The recorded figures, as the table of the guide. A test of the documents uses this file, too.

use std::fmt::Write as _;

/// The first line of the recorded figures after the one that says how they were measured.
pub(crate) const HEADER: &str = "store\tfunction\tdelivered\trecords\trequests\tfunction_us\tserver_us\twrite_us\tbare_us\tbeside_bare\tbeside_row\tp50_ms\tpeak_mb";
/// How many of its columns are figures.
pub(crate) const FIGURES: usize = 9;
/// What surrounds the table in the guide.
pub(crate) const BEGIN: &str =
    "<!-- measured: cargo bench -p lambda-idempotency-figures --bench stores -- --record -->\n";
/// The end of the table in the guide.
pub(crate) const END: &str = "<!-- measured: end -->\n";

/// The figures that the page shows, by their place. The others follow from them, or are for a comparison in detail.
const SHOWN: [usize; 6] = [0, 1, 2, 5, 7, 8];
const TITLES: &str = "| | requests a record | function, us a record | server, us a record | a write beside a bare one \
     | p50, ms | memory, MB |\n|---|--:|--:|--:|--:|--:|--:|\n";

/// The part of the guide for these recorded figures: how they were measured, and the rows of the functions that use the
/// library.
///
/// # Errors
/// A line that is not as it was recorded.
pub(crate) fn guide(recorded: &str) -> Result<String, String> {
    let mut lines = recorded.lines();
    let how = lines.next().and_then(|line| line.strip_prefix("# ")).ok_or("it does not say how")?;
    if lines.next() != Some(HEADER) {
        return Err("its columns are others".to_owned());
    }
    let mut table = TITLES.to_owned();
    for line in lines {
        let row: Vec<&str> = line.split('\t').collect();
        let [store, function, delivered, records, figures @ ..] = &*row else {
            return Err(line.to_owned());
        };
        if figures.len() != FIGURES {
            return Err(line.to_owned());
        }
        if matches!(*function, "stored" | "prepared") {
            let name = name(store, function, delivered, records);
            let figures =
                SHOWN.iter().filter_map(|at| figures.get(*at).map(|figure| shown(figure)));
            let figures = figures.collect::<Vec<_>>();
            let _ = writeln!(table, "| {name} | {} |", figures.join(" | "));
        }
    }
    Ok(format!("{BEGIN}\n{how}\n\n{table}\n{END}"))
}

fn name(store: &str, function: &str, delivered: &str, records: &str) -> String {
    let store = match store {
        "dynamodb" => "DynamoDB",
        "postgres" => "PostgreSQL",
        "redis" => "Redis",
        other => other,
    };
    let how = if function == "prepared" { ", prepared statements" } else { "" };
    let what = match (delivered, records) {
        ("new", "1") => "new record".to_owned(),
        ("new", _) => "new records".to_owned(),
        ("duplicates", "1") => "duplicate".to_owned(),
        (other, _) if other == "duplicates" => other.to_owned(),
        (other, _) => format!("records, {other}"),
    };
    format!("{store}{how}, {records} {what}")
}

/// A figure with three digits, or more if it is large.
fn shown(figure: &str) -> String {
    match figure.parse::<f64>() {
        Err(_) => "-".to_owned(),
        Ok(value) if value >= 99.95 => format!("{value:.0}"),
        Ok(value) if value >= 9.995 => format!("{value:.1}"),
        Ok(value) => format!("{value:.2}"),
    }
}
