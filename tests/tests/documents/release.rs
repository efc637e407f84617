//! The notes of a release are the section of its version in the changelog.

use std::{
    fs,
    process::{Command, Output},
};

use crate::{read, root};

const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n- soon\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- two\n\n\
                         ## [0.1.1]\n\n- no date\n\n## [0.1.0] - 2026-11-30\n\n[0.1.0]: https://example.com\n";

/// The notes of this version in this changelog.
fn notes(version: &str, changelog: &str) -> Output {
    let file = std::env::temp_dir().join(format!("changelog-{}-{version}", std::process::id()));
    fs::write(&file, changelog).expect("a file");
    let output = Command::new("python3")
        .args([root().join("tests/release-notes").as_os_str(), version.as_ref(), file.as_os_str()])
        .output()
        .expect("python3, which tests/run needs, too");
    fs::remove_file(&file).expect("the file");
    output
}

#[test]
fn the_notes_of_a_release_are_its_section() {
    let output = notes("0.2.0", CHANGELOG);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "### Added\n\n- two\n");
    assert!(output.status.success());
}

#[test]
fn an_unfinished_changelog_has_no_notes() {
    for (version, problem) in [
        ("0.1.0", "is empty"),
        ("0.1.1", "no date"),
        ("0.3.0", "no section"),
        ("0.2", "no section"),
    ] {
        let output = notes(version, CHANGELOG);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(problem), "{version}: {said}");
    }
    // The section of the next version becomes its notes when it gets number and date.
    let finished = read("CHANGELOG.md").replace("## [Unreleased]", "## [9.9.9] - 2026-11-30");
    assert!(String::from_utf8_lossy(&notes("9.9.9", &finished).stdout).contains("### Added"));
}
