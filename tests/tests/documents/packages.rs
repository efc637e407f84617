//! Each published crate has the description and the files that a package needs.

use std::fs;

use crate::{read, root};

/// Nothing is published yet, so a manifest that is to be copied names the clone beside the crate. With the first release,
/// these lines get its version.
#[test]
fn a_reader_can_build_with_the_manifests_that_documents_show() {
    let texts =
        crate::links::pages().into_iter().map(|page| fs::read_to_string(page).expect("a page"));
    let ours = |line: &&str| line.starts_with("lambda-idempotency") && line.contains(" = ");
    let found: Vec<String> = texts
        .flat_map(|text| text.lines().filter(ours).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(found.len() >= 5, "are these all? {found:?}");
    for line in found {
        assert!(line.contains("path = \"../lambda-idempotency/crates/"), "{line}");
    }
}

/// The folders of the crates that are published.
fn published() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).expect("crates");
    let names = folders.map(|folder| folder.expect("a crate").file_name().into_string());
    let names = names.map(|name| name.expect("a name"));
    names.filter(|name| !read(&manifest(name)).contains("\npublish = false\n")).collect()
}

fn manifest(name: &str) -> String {
    format!("crates/{name}/Cargo.toml")
}

/// The parts that a crate lacks; `has` returns whether it has a file.
fn lacks(
    manifest: &str,
    readme: &str,
    library: Option<&str>,
    has: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut lacking = Vec::new();
    let package = manifest.lines().find_map(|line| line.strip_prefix("name = "));
    let package = package.unwrap_or_default().trim_matches('"');
    let lines =
        ["description = \"", "readme = \"README.md\"", "license.workspace", "repository.workspace"];
    let missing =
        lines.iter().filter(|start| !manifest.lines().any(|line| line.starts_with(**start)));
    lacking.extend(missing.map(|line| format!("in its manifest: {line}")));
    let files = ["LICENSE-MIT", "LICENSE-APACHE"].into_iter().filter(|file| !has(file));
    lacking.extend(files.map(str::to_owned));
    if !readme.starts_with(&format!("# {package}\n")) || !readme.contains("**Who needs it:**") {
        lacking.push("a README with its name and who needs it".to_owned());
    }
    if let Some(library) = library {
        if !manifest.contains("\n[package.metadata.docs.rs]\n") {
            lacking.push("the settings for docs.rs".to_owned());
        }
        if !readme.contains("```rust") || !library.contains("include_str!(\"../README.md\")") {
            lacking.push("an example in its README that is tested".to_owned());
        }
    }
    lacking
}

#[test]
fn every_published_crate_is_complete() {
    let crates = published();
    assert!(crates.len() > 6, "{crates:?}: are these the crates?");
    for name in crates {
        let folder = root().join("crates").join(&name);
        let library = fs::read_to_string(folder.join("src/lib.rs")).ok();
        let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        // Follows links: the target has to exist.
        let has = |file: &str| fs::metadata(folder.join(file)).is_ok();
        let lacking = lacks(&read(&manifest(&name)), &readme, library.as_deref(), has);
        assert!(lacking.is_empty(), "crates/{name} lacks {lacking:?}");
    }
}
