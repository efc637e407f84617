//! The examples: each is small, has the command to run it in its header, and is in the list of examples. The
//! function that `template.yaml` deploys is small enough to be copied.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{read, root};

const FOLDER: &str = "crates/lambda/examples";
/// Lines that are not blank. `sources` is a catalogue, with an entry for each source.
const MOST_LINES: usize = 60;
const CATALOGUE: &str = "sources";
/// All files of the function together.
const MOST_LINES_OF_ORDERS: usize = 120;

fn lines(source: &str) -> usize {
    source.lines().filter(|line| !line.trim().is_empty()).count()
}

/// The files of the folder that end so, without the ending.
fn files(folder: &str, ending: &str) -> BTreeSet<String> {
    let files = fs::read_dir(root().join(folder)).expect(folder);
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
}

/// The examples in the table: ``| [`fifo`](fifo.rs) | ..``.
fn listed(readme: &str) -> BTreeSet<String> {
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| [`")?.split_once("`]("));
    let named = rows.filter(|(name, rest)| rest.starts_with(&format!("{name}.rs) |")));
    named.map(|(name, _)| name.to_owned()).collect()
}

/// What is wrong with an example, if anything is.
fn problems(name: &str, source: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let length = lines(source);
    if length > MOST_LINES && name != CATALOGUE {
        problems.push(format!("{length} lines, {MOST_LINES} are allowed"));
    }
    let header: Vec<_> = source.lines().take_while(|line| line.starts_with("//!")).collect();
    if !header.iter().any(|line| line.contains("```console")) {
        problems.push("its header has no command that runs it".to_owned());
    }
    let command = header.join("\n").replace("\\\n//!", "");
    if !command.contains(&format!("--example {name}")) {
        problems.push(format!("the command in its header has no `--example {name}`"));
    }
    let deployed = source.contains("lambda_runtime::run") || source.contains("lambda_http::run");
    if deployed && !source.contains("#[cfg(test)]") && !source.contains("//! **In AWS**") {
        problems.push("its header does not say what to set in AWS".to_owned());
    }
    let events = command.split_whitespace().filter(|word| word.ends_with(".json"));
    let missing = events.filter(|event| !root().join(event).exists());
    problems.extend(missing.map(|event| format!("there is no event {event}")));
    problems
}

#[test]
fn the_list_of_examples_is_complete() {
    let present = files(FOLDER, ".rs");
    assert!(present.len() > 9, "{present:?}: are these the examples?");
    assert_eq!(listed(&read(&format!("{FOLDER}/README.md"))), present);
    // The crate's front page names them, too.
    let front = read("crates/lambda/src/lib.rs");
    let front = front.split("\nmod ").next().expect("the documentation");
    let missing: Vec<_> =
        present.iter().filter(|name| !front.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in the docs of the crate: {missing:?}");
}

#[test]
fn every_example_is_small_and_has_a_command() {
    let mut mistakes = Vec::new();
    for name in files(FOLDER, ".rs") {
        let source = read(&format!("{FOLDER}/{name}.rs"));
        mistakes.extend(problems(&name, &source).into_iter().map(|what| format!("{name}: {what}")));
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn every_event_beside_the_examples_is_used() {
    let sources: String =
        files(FOLDER, ".rs").iter().map(|name| read(&format!("{FOLDER}/{name}.rs"))).collect();
    for event in files(FOLDER, ".json") {
        assert!(sources.contains(&format!("{FOLDER}/{event}.json")), "{event}");
    }
}

#[test]
fn the_function_that_is_deployed_can_be_copied() {
    let folder = "crates/orders/src";
    let files = files(folder, ".rs");
    let sources: Vec<_> = files.iter().map(|name| read(&format!("{folder}/{name}.rs"))).collect();
    let length: usize = sources.iter().map(|source| lines(source)).sum();
    assert!(length <= MOST_LINES_OF_ORDERS, "{length} lines in {files:?}");
}

/// The command builds the function by name only when it runs, so this test checks that the name exists.
#[test]
fn the_function_that_chaos_builds_exists() {
    let command = read("crates/cli/src/chaos/mod.rs");
    assert!(command.contains(concat!("\"", env!("CARGO_PKG_NAME"), "\"")), "another package");
    assert!(command.contains("\"scripted_orders\""), "another binary");
    assert!(Path::new(env!("CARGO_BIN_EXE_scripted_orders")).exists());
}
