//! Every test that `docs/scenarios.md` names exists.

use crate::{
    names::{names, wrong},
    read,
};

#[test]
fn every_test_in_the_table_exists() {
    let table = read("docs/scenarios.md");
    let (mut rows, mut named, mut mistakes) = (0, 0, Vec::new());
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        if row.starts_with("| Scenario |") {
            continue;
        }
        rows += 1;
        let excused = ["does not apply", "left out", "on purpose", "are made of the raw JSON"];
        if names(row).next().is_none() && !excused.iter().any(|reason| row.contains(reason)) {
            mistakes.push(format!("neither a test nor a reason: {row}"));
        }
        named += names(row).count();
        mistakes.extend(names(row).filter_map(wrong));
    }
    assert!(rows > 90 && named > 120, "{rows} rows, {named} tests: is this the table?");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
