//! The notes of a release are the section of its version in the changelog, and a release that stopped between two
//! crates goes on.

use std::{
    env, fs,
    path::PathBuf,
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
    // The section of the first version becomes its notes when it gets a date.
    let finished = read("CHANGELOG.md").replace("] - unreleased", "] - 2026-11-30");
    assert!(String::from_utf8_lossy(&notes("0.1.0", &finished).stdout).contains("### Added"));
}

/// What `tests/publish-crates` asks Cargo to publish if crates.io has these versions, and its exit code.
fn published(there: &str) -> (String, bool) {
    let folder = env::temp_dir().join(format!("publish-{}-{}", std::process::id(), there.len()));
    fs::create_dir_all(&folder).expect("a folder");
    // Stands for Cargo: two crates to publish and one that is not.
    let cargo = r#"#!/bin/sh
case $1 in
metadata) echo '{"packages":[
    {"name":"core","version":"0.2.0","publish":null},
    {"name":"engine","version":"0.2.0","publish":null},
    {"name":"example","version":"0.2.0","publish":[]}]}' ;;
info) case " $THERE " in *" $5 "*) ;; *) exit 101 ;; esac ;;
publish) echo "$@" >"${0%/*}/published" ;;
esac
"#;
    let script = folder.join("cargo");
    fs::write(&script, cargo).expect("a script");
    Command::new("chmod").arg("+x").arg(&script).status().expect("chmod");
    let others = env::var_os("PATH").unwrap_or_default();
    let path: Vec<PathBuf> =
        [folder.clone()].into_iter().chain(env::split_paths(&others)).collect();
    let status = Command::new("bash")
        .arg(root().join("tests/publish-crates"))
        .env("PATH", env::join_paths(path).expect("a path"))
        .env("THERE", there)
        .output()
        .expect("bash, which tests/run needs, too");
    let asked = fs::read_to_string(folder.join("published")).unwrap_or_default();
    fs::remove_dir_all(&folder).expect("the folder");
    (asked.trim().to_owned(), status.status.success())
}

#[test]
fn a_release_that_stopped_between_two_crates_goes_on() {
    let all = "publish --workspace --locked --no-verify";
    for (there, asked) in [
        ("", all.to_owned()),
        ("core@0.1.0", all.to_owned()),
        ("core@0.2.0", format!("{all} --exclude core")),
        ("core@0.2.0 engine@0.2.0", String::new()),
    ] {
        assert_eq!(published(there), (asked, true), "{there:?}");
    }
    let workflow = read(".github/workflows/release.yml");
    for step in ["bash tests/publish-crates", "bash tests/run publish"] {
        assert!(workflow.contains(&format!("run: {step}\n")), "{step}");
    }
}
