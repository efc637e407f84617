//! The tables of instructions, from what `bash tests/run counts-dynamodb` has recorded.

use super::tables::{grouped, head, row};
use crate::read;

const COUNTS: &str = "tests/counts/recorded-dynamodb.tsv";
const PARTS: &str = "tests/counts/parts-dynamodb.tsv";
const BY_HAND: &str = "by hand: 1 new";

/// Each way in with one new record, beside the function by hand.
pub(crate) fn ways() -> String {
    let text = read(COUNTS);
    let of_one = text.lines().filter_map(|line| line.split_once('\t'));
    let counts: Vec<(&str, f64)> = of_one
        .filter_map(|(count, name)| Some((name.strip_suffix(": 1 new")?, count.parse().ok()?)))
        .collect();
    let by_hand = counts.iter().find(|(name, _)| BY_HAND.starts_with(name));
    let (_, by_hand) = *by_hand.expect("the function by hand is counted");
    let mut table = head(&["", "thousand instructions", "by hand = 1"]);
    for (name, count) in counts {
        let cells = [thousands(count), format!("{:.2}", count / by_hand)];
        table.push_str(&row(name, cells));
    }
    table
}

/// To which crates they belong, for one new record.
pub(crate) fn parts() -> String {
    table_of_parts(": 1 new", 1.0)
}

/// The same for each of a hundred.
pub(crate) fn parts_of_each() -> String {
    table_of_parts(": 100 new", 100.0)
}

/// The columns of the cases whose names end so, divided by their records. The file has tabs, and the part last.
fn table_of_parts(end: &str, records: f64) -> String {
    let text = read(PARTS);
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t'));
    let columns: Vec<(usize, &str)> = lines
        .next()
        .into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(at, name)| Some((at, name.strip_suffix(end)?)))
        .collect();
    let mut names = vec!["part"];
    names.extend(columns.iter().map(|(_, name)| *name));
    let mut table = head(&names);
    for line in lines {
        let cells: Vec<&str> = line.collect();
        let part = cells.last().expect("a part");
        let count = |at: usize| cells[at].parse::<f64>().expect("a number") / records;
        table.push_str(&row(part, columns.iter().map(|(at, _)| thousands(count(*at)))));
    }
    table
}

fn thousands(count: f64) -> String {
    grouped(&format!("{:.0}", count / 1000.0))
}
