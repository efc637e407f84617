//! The examples: each is small, has the command to run it in its header, and is in the list of examples. The
//! function that `template.yaml` deploys is small enough to be copied.

use std::{collections::BTreeSet, path::Path};

use crate::{files, read, root};

const FOLDER: &str = "crates/lambda/examples";
/// Lines that are not blank. `sources` is a catalogue, with an entry for each source.
const MOST_LINES: usize = 60;
/// All files of the function together.
const MOST_LINES_OF_ORDERS: usize = 120;

fn lines(source: &str) -> usize {
    source.lines().filter(|line| !line.trim().is_empty()).count()
}

/// What is wrong with an example, if anything is.
fn problems(name: &str, source: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let length = lines(source);
    if length > MOST_LINES && name != "sources" {
        problems.push(format!("{name}: {length} lines, {MOST_LINES} are allowed"));
    }
    let header: Vec<_> = source.lines().take_while(|line| line.starts_with("//!")).collect();
    let command = header.join("\n").replace("\\\n//!", "");
    if !command.contains(&format!("--example {name}")) {
        problems.push(format!("{name}: its header has no command with `--example {name}`"));
    }
    let deployed = source.contains("lambda_runtime::run") || source.contains("lambda_http::run");
    if deployed && !source.contains("#[cfg(test)]") && !source.contains("//! **In AWS**") {
        problems.push(format!("{name}: its header does not say what to set in AWS"));
    }
    let events = command.split_whitespace().filter(|word| word.ends_with(".json"));
    let missing = events.filter(|event| !root().join(event).exists());
    problems.extend(missing.map(|event| format!("{name}: there is no event {event}")));
    problems
}

#[test]
fn every_example_is_listed_and_small_and_has_a_command() {
    let examples = files(&[FOLDER], &[".rs"]);
    let name = |path: &str| path[FOLDER.len() + 1..path.len() - ".rs".len()].to_owned();
    let problems: Vec<_> =
        examples.iter().flat_map(|(path, source)| problems(&name(path), source)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    // In the table of the folder, and on the crate's front page.
    let list = read(&format!("{FOLDER}/README.md"));
    let rows = list.lines().filter_map(|line| line.strip_prefix("| [`")?.split_once("`]("));
    let rows = rows.filter(|(name, rest)| rest.starts_with(&format!("{name}.rs) |")));
    let listed: BTreeSet<_> = rows.map(|(name, _)| name.to_owned()).collect();
    let present: BTreeSet<_> = examples.iter().map(|(path, _)| name(path)).collect();
    assert!(present.len() > 9 && listed == present, "{present:?}");
    let front = read("crates/lambda/src/lib.rs");
    let front = front.split("\nmod ").next().expect("the documentation");
    let missing: Vec<_> =
        present.iter().filter(|name| !front.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in the docs of the crate: {missing:?}");
    let sources: String = examples.into_iter().map(|(_, source)| source).collect();
    for (event, _) in files(&[FOLDER], &[".json"]) {
        assert!(sources.contains(&event), "no example has {event}");
    }
}

#[test]
fn the_function_that_is_deployed_can_be_copied() {
    let length: usize = files(&["crates/orders/src"], &[".rs"]).iter().map(|it| lines(&it.1)).sum();
    assert!(length <= MOST_LINES_OF_ORDERS, "{length} lines");
}

/// The command builds the function by name only when it runs, so this test checks that the name exists.
#[test]
fn the_function_that_chaos_builds_exists() {
    let command = read("crates/cli/src/chaos/mod.rs");
    assert!(command.contains(concat!("\"", env!("CARGO_PKG_NAME"), "\"")), "another package");
    assert!(command.contains("\"scripted_orders\""), "another binary");
    assert!(Path::new(env!("CARGO_BIN_EXE_scripted_orders")).exists());
}
