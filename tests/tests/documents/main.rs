//! The documents match the code: the tests, files, settings and crates that they name exist, each source has a
//! page with all sections, and the examples can be copied.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod apis;
mod at_scale;
mod crates;
mod examples;
mod figures;
mod glossary;
mod guarantees;
mod keys;
mod links;
mod messages;
mod methods;
mod modules;
mod names;
mod outcomes;
mod packages;
mod pages;
mod performance;
mod powertools;
mod release;
mod settings;
mod stores;

use std::{fs, path::PathBuf};

/// The repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}
