//! Compares the tables of `docs/model.md`, and the recorded figures, with this model.
//!
//! Each explored world and each rule that is left out looks for its row, and fails with the correct row.
//! The tests below find rows of worlds, rules and properties that no longer exist.

use std::{collections::BTreeSet, sync::LazyLock};

use crate::{
    model_page::{self, PAGE, grouped, read},
    properties,
    rules::Rule,
    setup::Setup,
};

const RECORDED: &str = "tests/machine_model/recorded.txt";

/// A table of the page, or of the recorded figures.
#[derive(Clone, Copy)]
enum Table {
    Properties,
    Worlds,
    Larger,
    Rules,
}

impl Table {
    /// Its rows, without the heading.
    fn rows(self) -> impl Iterator<Item = &'static str> {
        static TABLES: LazyLock<String> = LazyLock::new(|| read(RECORDED));
        match self {
            Self::Properties => model_page::rows(&PAGE, "\n### What must hold of the engine\n"),
            Self::Worlds => model_page::rows(&TABLES, "\n## Worlds\n"),
            Self::Larger => model_page::rows(&TABLES, "\n## Larger worlds\n"),
            Self::Rules => model_page::rows(&PAGE, "\n### The engine without one rule\n"),
        }
    }

    /// The first cells of its rows.
    fn names(self) -> BTreeSet<&'static str> {
        model_page::names(self.rows())
    }
}

/// Asserts that a world was recorded with this many states, and this many steps to the farthest one.
pub(crate) fn world(setup: &Setup, states: usize, steps: usize) {
    let row = format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {steps} |",
        setup.name,
        setup.processes,
        setup.processes * setup.at_once,
        setup.messages.len(),
        setup.keys.len(),
        faults(setup),
        setup.witness.receives(),
        grouped(states),
    );
    println!("{row}");
    // Larger figures are recorded for some worlds only.
    if Setup::is_large() && !Table::Larger.names().contains(setup.name) {
        return;
    }
    let mut rows = if Setup::is_large() { Table::Larger } else { Table::Worlds }.rows();
    assert!(rows.any(|other| other == row), "{RECORDED} has no such row:\n{row}");
}

/// The faults of a world, in words.
fn faults(setup: &Setup) -> String {
    let faults = setup.faults;
    let kinds = [
        (faults.deaths, "death"),
        (faults.losses, "lost answer"),
        (faults.late, "late write"),
        (faults.refusals, "throttled call"),
        (faults.delays, "delay"),
        (faults.errors, "failure"),
        (faults.hangs, "hanging handler"),
        (faults.steps, "clock step"),
    ];
    let said = kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| {
        let plural = if *count > 1 { "s" } else { "" };
        format!("{count} {kind}{plural}")
    });
    said.collect::<Vec<_>>().join(", ")
}

/// Asserts that the page says that this property breaks without the rule.
pub(crate) fn mutant(rule: Rule, property: &str) {
    let (begin, end) = (format!("| `{rule:?}` | "), format!(" | {property} |"));
    let has = |row: &str| row.starts_with(&begin) && row.ends_with(&end);
    let row = format!("{begin}...{end}");
    assert!(Table::Rules.rows().any(has), "docs/model.md has no such row:\n{row}");
}

#[test]
fn each_property_is_documented_and_no_other() {
    let all = properties::all();
    let checked: BTreeSet<_> = all.iter().map(|property| property.name).collect();
    assert_eq!(Table::Properties.names(), checked);
    // Mutants of admission break these in `tests/model`; the bound on receives is asserted to be exact.
    let elsewhere = [
        properties::ONE_OWNER,
        properties::STARTS_AS_OWNER,
        properties::FINAL,
        properties::RECOVERY,
    ];
    let broken: BTreeSet<_> =
        Table::Rules.rows().filter_map(|row| row.split('|').nth(3)).map(str::trim).collect();
    let blind = checked.iter().filter(|name| !broken.contains(*name) && !elsewhere.contains(name));
    assert_eq!(blind.collect::<Vec<_>>(), Vec::<&&str>::new(), "properties that no mutant breaks");
}

#[test]
fn each_rule_is_asked_for_and_has_a_mutant() {
    let rules = |path: &str| {
        let source = read(path);
        let (_, body) = source.split_once("enum Rule {").expect("the rules");
        let body = body.split('}').next().expect("the end of the rules");
        let names = body.lines().map(|line| line.trim().trim_end_matches(','));
        names
            .filter(|name| !name.is_empty() && !name.starts_with("//"))
            .map(str::to_owned)
            .collect()
    };
    let engines: BTreeSet<String> = rules("src/rules.rs");
    let patch = read("rules.patch");
    let asked = |rule: &&String| patch.contains(&format!("keeps(Rule::{rule})"));
    assert_eq!(engines.iter().filter(asked).count(), engines.len());
    let documented: BTreeSet<String> =
        Table::Rules.names().into_iter().map(str::to_owned).collect();
    assert_eq!(documented, engines);
    let files =
        ["mutants.rs", "outboxes.rs", "transactions.rs", "steps.rs", "optimistic.rs", "mutex.rs"];
    let mutants = files.map(|file| read(&format!("tests/machine_model/{file}"))).concat();
    let tested = |rule: &&String| mutants.contains(&format!("Rule::{rule}, "));
    assert_eq!(engines.iter().filter(tested).count(), engines.len());
}

#[test]
fn each_recorded_world_is_one_of_the_model() {
    let files = [
        "worlds.rs",
        "recovery.rs",
        "outboxes.rs",
        "transactions.rs",
        "steps.rs",
        "optimistic.rs",
        "mutex.rs",
    ];
    let worlds = files.map(|file| read(&format!("tests/machine_model/{file}"))).concat();
    let small = Table::Worlds.names();
    let is_missing = |name: &&&str| !worlds.contains(&format!("\"{name}\""));
    let missing: Vec<_> = small.iter().filter(is_missing).collect();
    assert!(!small.is_empty() && missing.is_empty(), "not in the model: {missing:?}");
    let larger = Table::Larger.names();
    assert!(!larger.is_empty() && larger.iter().filter(is_missing).count() == 0);
}
