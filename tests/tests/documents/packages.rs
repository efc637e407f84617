//! What users read first of a crate. `bash tests/run package` checks the other files and the manifest of each.

use std::collections::BTreeMap;

use crate::{files, pages, read, sources};

/// Nothing is published yet, so a manifest that is to be copied names the clone beside the crate. With the first release,
/// these lines get its version.
#[test]
fn a_reader_can_build_with_the_manifests_that_documents_show() {
    let pages = pages();
    let lines = pages.iter().flat_map(|(_, text)| text.lines());
    let ours = |line: &&str| line.starts_with("lambda-idempotency") && line.contains(" = ");
    let found: Vec<_> = lines.filter(ours).collect();
    assert!(found.len() >= 5, "are these all? {found:?}");
    for line in found {
        assert!(line.contains("path = \"../lambda-idempotency/crates/"), "{line}");
    }
}

/// A README begins with the name, and says who needs the crate. That of a library is its front page, with an example,
/// which is tested then.
#[test]
fn every_published_crate_has_a_readme_and_each_crate_is_in_that_of_the_project() {
    let libraries: BTreeMap<_, _> = sources().into_iter().collect();
    let readme = read("README.md");
    let mut published = 0;
    for (path, manifest) in files(&["crates"], &["Cargo.toml"]) {
        let folder = path.trim_end_matches("/Cargo.toml");
        let is_row = |line: &str| line.starts_with("| ") && line.contains(&format!("]({folder})"));
        assert!(readme.lines().any(is_row), "{folder} is not in the README");
        if manifest.contains("\npublish = false\n") {
            continue;
        }
        published += 1;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("a name");
        let text = read(&format!("{folder}/README.md"));
        let begins = text.starts_with(&format!("# {}\n", name.trim_matches('"')));
        assert!(begins && text.contains("**Who needs it:**"), "{folder}");
        if let Some(library) = libraries.get(&format!("{folder}/src/lib.rs")) {
            assert!(library.contains("include_str!(\"../README.md\")"), "{folder}");
            assert!(text.contains("```rust"), "{folder}: no example");
        }
    }
    assert!(published > 6, "{published} crates: are these all?");
}
