//! What the documents say is there: tests by their names, files by their links, settings and crates in
//! the README, a page for each source with all that a page has, examples that can be copied.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod apis;
mod crates;
mod examples;
mod glossary;
mod guarantees;
mod links;
mod messages;
mod modules;
mod names;
mod outcomes;
mod packages;
mod pages;
mod scenarios;
mod settings;

use std::{fs, path::PathBuf};

/// The repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}
