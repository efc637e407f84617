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

/// To which crates they belong.
pub(crate) fn parts() -> String {
    let text = read(PARTS);
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut cells: Vec<&str> = line.split('\t').collect();
        // The name of the part is last in the file, and first in the table.
        cells.rotate_right(1);
        cells
    });
    let names: Vec<&str> =
        lines.next().into_iter().flatten().map(|name| name.trim_end_matches(": 1 new")).collect();
    let mut table = head(&names);
    for cells in lines {
        let (part, counts) = cells.split_first().expect("a part");
        let count = |text: &&str| thousands(text.parse().expect("a number"));
        table.push_str(&row(part, counts.iter().map(count)));
    }
    table
}

fn thousands(count: f64) -> String {
    grouped(&format!("{:.0}", count / 1000.0))
}

#[test]
fn one_by_hand_is_one() {
    assert!(ways().contains("| by hand | 7"), "{}", ways());
    assert!(
        ways().lines().any(|line| line.starts_with("| by hand |") && line.ends_with("| 1.00 |"))
    );
}
