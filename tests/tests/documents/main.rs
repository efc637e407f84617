//! The documents match the code where a mistake would cost a user a record or a search: keys, guarantees and their
//! tests, outcomes, messages, settings.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod guarantees;
mod keys;
mod messages;
mod names;
mod outcomes;
mod settings;

use std::{fs, path::PathBuf};

/// The repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// The files in these folders whose names end so: their paths from the root of the repository, and their texts. What
/// builds leave is not among them.
fn files(folders: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let mut open: Vec<String> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect(&folder) {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name");
            let path = if folder == "." { name.clone() } else { format!("{folder}/{name}") };
            if !entry.path().is_dir() {
                let is_wanted = endings.iter().any(|ending| name.ends_with(ending));
                found.extend(is_wanted.then(|| (path.clone(), read(&path))));
            } else if !name.starts_with('.') && !["target", "node_modules"].contains(&&*name) {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The library sources of all crates.
fn sources() -> Vec<(String, String)> {
    let mut sources = files(&["crates"], &[".rs"]);
    sources.retain(|(path, _)| path.split('/').nth(2) == Some("src"));
    assert!(sources.len() > 200, "{}: are these the sources?", sources.len());
    sources
}

/// The code between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
