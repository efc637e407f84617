//! The guide's tables list every setting of operations and sources, the docs of results theirs, and the README every
//! crate.

use std::{collections::BTreeSet, fs};

use crate::{read, root};

const PAGE: &str = "crates/lambda/src/guide/settings.md";

/// The methods of a type that return it: its settings.
fn settings(source: &str) -> BTreeSet<String> {
    let methods = source.split("pub fn ").skip(1);
    let settings = methods.filter(|method| {
        let signature = method.split('{').next().unwrap_or(method);
        let returns_itself = signature.contains("-> Self");
        returns_itself && (signature.contains("(self") || signature.contains("mut self"))
    });
    settings.filter_map(|method| method.split(['(', '<']).next()).map(str::to_owned).collect()
}

fn every_setting() -> BTreeSet<String> {
    let folders = ["operation", "source"].map(|name| root().join("crates/lambda/src").join(name));
    let files = folders.into_iter().flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let files = files.map(|file| fs::read_to_string(file.expect("a file").path()));
    files.flat_map(|file| settings(&file.expect("a file"))).collect()
}

/// The names in the first column of a page's tables, without arguments: `on_busy` for `` `on_busy(hook)` ``.
fn named(page: &str) -> BTreeSet<String> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let words = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    words.filter_map(|word| word.split('(').next()).map(str::to_owned).collect()
}

#[test]
fn every_setting_of_operations_and_sources_is_in_the_guide() {
    let settings = every_setting();
    assert!(settings.len() > 25, "{settings:?}: are these the settings?");
    let missing: Vec<_> = settings.difference(&named(&read(PAGE))).cloned().collect();
    assert!(missing.is_empty(), "not in {PAGE}: {missing:?}");
}

#[test]
fn every_setting_of_results_is_in_the_table_of_its_docs() {
    const FILE: &str = "crates/results/src/results.rs";
    let source = read(FILE);
    let settings = settings(&source);
    assert!(settings.len() > 5, "{settings:?}: are these the settings?");
    let listed = named(&source.replace("/// ", ""));
    let missing: Vec<_> = settings.difference(&listed).collect();
    assert!(missing.is_empty(), "not in the table of {FILE}: {missing:?}");
}

#[test]
fn every_crate_is_in_the_readme() {
    let readme = read("README.md");
    let crates = fs::read_dir(root().join("crates")).expect("a folder");
    for folder in crates.map(|folder| folder.expect("a folder").file_name()) {
        let link = format!("](crates/{})", folder.to_string_lossy());
        assert!(
            readme.lines().any(|line| line.starts_with("| ") && line.contains(&link)),
            "{link}"
        );
    }
}
