//! Compares the tables of `docs/model.md` with the model.
//!
//! Each explored configuration and each caught mutant looks for its row, and fails with the correct row.
//! The tests below find rows of configurations, mutants and properties that no longer exist.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{
    model_page::{self, PAGE, grouped},
    properties,
    setup::Setup,
};

/// A table of the page.
#[derive(Clone, Copy)]
enum Table {
    Properties,
    Configurations,
    Larger,
    Mutants,
}

impl Table {
    /// Its rows, without the heading.
    fn rows(self) -> impl Iterator<Item = &'static str> {
        let heading = match self {
            Self::Properties => "\n## What must hold\n",
            Self::Configurations => "\n## The configurations\n",
            Self::Larger => "\n## A larger run\n",
            Self::Mutants => "\n## The mutants\n",
        };
        model_page::rows(heading)
    }

    /// The first cells of its rows.
    fn names(self) -> BTreeSet<&'static str> {
        model_page::names(self.rows())
    }
}

/// Asserts that the page has the row of a configuration with this many states, and this many steps to the
/// farthest one.
pub(crate) fn configuration(setup: &Setup, states: usize, steps: usize) {
    let faults = setup.faults;
    let row = format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {steps} |",
        setup.name,
        setup.workers,
        setup.keys,
        setup.deliveries + setup.others,
        setup.end,
        faults.crashes,
        faults.timeouts,
        faults.errors,
        grouped(states),
    );
    println!("{row}");
    let mut rows = if Setup::is_large() { Table::Larger } else { Table::Configurations }.rows();
    assert!(rows.any(|other| other == row), "docs/model.md has no such row:\n{row}");
}

/// Asserts that the page says that a mutant breaks these properties.
pub(crate) fn mutant(name: &str, properties: &[&str]) {
    let (begin, end) = (format!("| `{name}` | "), format!(" | {} |", properties.join(", ")));
    let has = |row: &str| row.starts_with(&begin) && row.ends_with(&end);
    let row = format!("{begin}...{end}");
    assert!(Table::Mutants.rows().any(has), "docs/model.md has no such row:\n{row}");
}

#[test]
fn each_property_is_documented_and_no_other() {
    let checked = properties::of(&Setup::new("any"));
    let checked: BTreeSet<_> = checked.iter().map(|property| property.name).collect();
    assert_eq!(Table::Properties.names(), checked);
    // These are broken by Powertools, and by a retention that is too short.
    let elsewhere = [properties::NOT_OVERWRITTEN, properties::FENCES_OUTLIVE];
    let broken = Table::Mutants.rows().filter_map(|row| row.split('|').nth(3));
    let broken: BTreeSet<_> = broken.flat_map(|cell| cell.trim().split(", ")).collect();
    let blind = checked.iter().filter(|name| !broken.contains(*name) && !elsewhere.contains(name));
    assert_eq!(blind.count(), 0, "a property that no mutant breaks: {broken:?}");
}

#[test]
fn each_mutant_is_documented_and_no_other() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/engine/tests/model/mutants");
    let files = fs::read_dir(folder).expect("the mutants").map(|file| file.expect("a file").path());
    let sources: Vec<_> = files.map(|file| fs::read_to_string(file).expect("a source")).collect();
    let written: BTreeSet<_> = sources.iter().flat_map(|source| mutants(source)).collect();
    assert_eq!(Table::Mutants.names(), written);
    let said = format!(" {} protocols ", written.len());
    assert!(PAGE.contains(&said), "docs/model.md does not say that there are{said}");
}

/// The mutants that a file defines: `pub(crate) struct Name;`, and `Name: Rule;` in a macro.
fn mutants(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let line = line.trim().strip_suffix(';')?;
        let alone = line.strip_prefix("pub(crate) struct ").filter(|name| !name.starts_with('$'));
        alone.or_else(|| {
            let (name, rule) = line.split_once(": ")?;
            let is_name = |text: &str| text.chars().all(char::is_alphanumeric);
            (is_name(name) && is_name(rule)).then_some(name)
        })
    })
}

#[test]
fn each_configuration_documented_is_one_of_the_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/engine/tests/model");
    let worlds = ["configurations.rs", "rules.rs", "fleet.rs"];
    let worlds = worlds.map(|file| fs::read_to_string(folder.join(file)).expect(file)).concat();
    let small = Table::Configurations.names();
    assert_eq!(small, Table::Larger.names());
    let missing: Vec<_> =
        small.iter().filter(|name| !worlds.contains(&format!("\"{name}\""))).collect();
    assert!(!small.is_empty() && missing.is_empty(), "not in the model: {missing:?}");
}
