//! Compares the recorded figures, and the properties in `docs/model.md`, with the model.
//!
//! Each explored configuration looks for its row, and fails with the correct row. The tests below find rows of
//! configurations and properties that no longer exist, and mutants and properties without a check.

use std::{collections::BTreeSet, fs, sync::LazyLock};

use crate::{
    model_page::{self, PAGE, grouped, read},
    properties,
    setup::Setup,
};

const RECORDED: &str = "tests/model/recorded.txt";

/// A table of the recorded figures.
#[derive(Clone, Copy)]
enum Table {
    Configurations,
    Larger,
}

impl Table {
    /// Its rows, without the heading.
    fn rows(self) -> impl Iterator<Item = &'static str> {
        static TABLES: LazyLock<String> = LazyLock::new(|| read(RECORDED));
        let heading = match self {
            Self::Configurations => "\n## The configurations\n",
            Self::Larger => "\n## A larger run\n",
        };
        model_page::rows(&TABLES, heading)
    }

    /// The first cells of its rows.
    fn names(self) -> BTreeSet<&'static str> {
        model_page::names(self.rows())
    }
}

/// Asserts that a configuration was recorded with this many states, and this many steps to the farthest one.
pub(crate) fn configuration(setup: &Setup, states: usize, steps: usize) {
    let faults = setup.faults;
    let row = format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {steps} |",
        setup.name,
        setup.workers,
        setup.deliveries + setup.others,
        setup.end,
        faults.crashes,
        faults.timeouts,
        faults.errors,
        grouped(states),
    );
    println!("{row}");
    let mut rows = if Setup::is_large() { Table::Larger } else { Table::Configurations }.rows();
    assert!(rows.any(|other| other == row), "{RECORDED} has no such row:\n{row}");
}

#[test]
fn each_property_is_documented_and_no_other() {
    let checked = properties::of(&Setup::new("any"));
    let checked: BTreeSet<_> = checked.iter().map(|property| property.name).collect();
    assert_eq!(model_page::names(model_page::rows(&PAGE, "\n## What must hold\n")), checked);
}

/// The statements that say what a protocol breaks: `catch(file::MUTANT, world, &[PROPERTY])`.
fn catches() -> Vec<String> {
    let files =
        ["caught.rs", "rules.rs", "fleet.rs"].map(|file| read(&format!("tests/model/{file}")));
    let statements = files.iter().flat_map(|text| text.split("catch(").skip(1));
    statements.filter_map(|rest| rest.split(';').next()).map(str::to_owned).collect()
}

#[test]
fn each_property_is_broken_by_a_protocol() {
    let (source, catches) = (read("tests/model/properties.rs"), catches());
    let names = source.lines().filter_map(|line| line.strip_prefix("pub(crate) const "));
    let names: Vec<_> =
        names.filter_map(|rest| rest.split_once(": &str")).map(|(name, _)| name).collect();
    assert!(names.len() > 20, "{names:?}: are these the properties?");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names_it =
        |catch: &String, name: &str| catch.split(|c| !is_word(c)).any(|word| word == name);
    let blind = names.iter().filter(|name| !catches.iter().any(|catch| names_it(catch, name)));
    assert_eq!(blind.collect::<Vec<_>>(), Vec::<&&str>::new(), "properties that nothing breaks");
}

#[test]
fn each_mutant_is_caught() {
    let files = fs::read_dir("tests/model/mutants")
        .expect("the mutants")
        .map(|file| file.expect("a file").path());
    let sources: Vec<_> = files.map(|file| fs::read_to_string(file).expect("a source")).collect();
    let written: BTreeSet<_> = sources
        .iter()
        .flat_map(|source| source.lines())
        .filter_map(|line| line.strip_prefix("pub(crate) const ")?.split(':').next())
        .collect();
    assert!(written.len() > 30, "{written:?}: are these the mutants?");
    let catches = catches();
    let caught: BTreeSet<_> = catches
        .iter()
        .filter_map(|catch| catch.trim_start().split(',').next()?.rsplit("::").next())
        .filter(|name| *name != "REAL")
        .collect();
    assert_eq!(caught, written);
}

#[test]
fn each_recorded_configuration_is_one_of_the_model() {
    let worlds = ["configurations.rs", "rules.rs", "fleet.rs"];
    let worlds = worlds.map(|file| read(&format!("tests/model/{file}"))).concat();
    let small = Table::Configurations.names();
    assert_eq!(small, Table::Larger.names());
    let missing: Vec<_> =
        small.iter().filter(|name| !worlds.contains(&format!("\"{name}\""))).collect();
    assert!(!small.is_empty() && missing.is_empty(), "not in the model: {missing:?}");
}
