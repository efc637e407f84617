//! Compares the tables of `rules.txt`, and the recorded figures, with the model, and prints them.
//!
//! Each explored world and each rule that is left out looks for its row, and fails with the correct row. The tests below
//! find rows of worlds, rules and properties that no longer exist.

use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

use crate::{properties, setup::Setup};

static RULES: LazyLock<String> = LazyLock::new(|| read("tests/model/rules.txt"));
static RECORDED: LazyLock<String> = LazyLock::new(|| read("tests/model/recorded.txt"));
static SOURCES: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model");
    let files = fs::read_dir(folder).expect("the model").map(|file| file.expect("a file").path());
    files.map(|file| fs::read_to_string(file).expect("text")).collect()
});

/// The text of a file of this package.
fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The rows of the table under a heading of a text.
fn rows(text: &'static str, heading: &str) -> impl Iterator<Item = &'static str> {
    let (_, section) = text.split_once(heading).expect("the heading");
    let section = section.split("\n##").next().unwrap_or_default();
    section.lines().filter(|line| line.starts_with("| ")).skip(1)
}

fn rules() -> impl Iterator<Item = &'static str> {
    rows(&RULES, "\n## Without one rule\n")
}

/// The cells of one column.
fn cells<'t>(rows: impl Iterator<Item = &'t str>, column: usize) -> BTreeSet<&'t str> {
    rows.filter_map(|row| row.split('|').nth(column))
        .map(|it| it.trim().trim_matches('`'))
        .collect()
}

/// What stands in quotes after each of these in a text.
fn quoted<'t>(text: &'t str, after: &str) -> BTreeSet<&'t str> {
    text.split(after).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Asserts that a world was recorded with this many states, and this many steps to the farthest one.
pub(crate) fn world(setup: &Setup, states: usize, steps: usize) {
    let digits = states.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    let states = groups.collect::<Vec<_>>().join(",");
    let row = format!("| {} | {} | {states} | {steps} |", setup.name, setup.witness.receives());
    println!("{row}");
    let is_recorded = RECORDED.lines().any(|other| other == row);
    assert!(is_recorded || Setup::is_large(), "recorded.txt has no such row:\n{row}");
}

/// Asserts that the table says that this property breaks without the rule.
pub(crate) fn mutant(rule: &str, property: &str) {
    let (begin, end) = (format!("| `{rule}` | "), format!(" | {property} |"));
    let has = |row: &str| row.starts_with(&begin) && row.ends_with(&end);
    assert!(rules().any(has), "rules.txt has no such row:\n{begin}...{end}");
}

#[test]
fn each_property_is_documented_and_broken_by_something() {
    println!("{}", *RULES);
    let all = properties::all();
    let checked: BTreeSet<_> = all.iter().map(|property| property.name).collect();
    assert_eq!(cells(rows(&RULES, "\n## What must hold\n"), 1), checked);
    // By Powertools, and by a short retention.
    let lost = [properties::NOT_OVERWRITTEN, properties::FENCES_OUTLIVE];
    let broken = cells(rules(), 3);
    let blind = checked.iter().filter(|name| !broken.contains(*name) && !lost.contains(name));
    assert_eq!(blind.collect::<Vec<_>>(), Vec::<&&str>::new(), "properties that nothing breaks");
}

#[test]
fn each_rule_is_asked_for_and_left_out() {
    let patch = read("rules.patch");
    let asked = quoted(&patch, "keeps(\"").union(&quoted(&SOURCES, "keeps(\"")).copied().collect();
    assert_eq!(cells(rules(), 1), asked);
    assert_eq!(quoted(&SOURCES, "catch(\""), asked);
}

#[test]
fn each_recorded_world_is_one_of_the_model() {
    let recorded = cells(rows(&RECORDED, "\n## Worlds\n"), 1);
    let missing = recorded.iter().filter(|name| !SOURCES.contains(&format!("\"{name}\"")));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new(), "not in the model");
    assert!(recorded.len() > 50);
}
