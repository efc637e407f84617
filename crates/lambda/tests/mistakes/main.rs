//! What the compiler says about mistakes of users: `cases` has one file for each, `expected.txt` the errors. Set
//! `RECORD_MISTAKES` to write them down again.
//!
//! The cases are compiled against the library that this test is linked with. Other compilers say it in other words, so
//! that the test compares those of one version alone.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

const COMPILER: &str = "rustc 1.95.";

fn compiler() -> Command {
    Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

fn lines(output: &[u8]) -> impl Iterator<Item = Value> {
    str::from_utf8(output).unwrap().lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// The library, as cargo has compiled it for this test. Offline, and without `--workspace`: that needs crates which
/// `cargo test` has not downloaded.
fn library() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--locked", "--offline", "--no-run", "--test", "mistakes"]);
    let output = cargo.args(["--quiet", "--message-format=json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let artifact = |line: Value| {
        let is_library = line["target"]["name"] == "lambda_idempotency";
        let file = line["filenames"].as_array()?.iter().find_map(|file| {
            file.as_str().filter(|file| file.ends_with(".rlib")).map(PathBuf::from)
        });
        file.filter(|_| is_library)
    };
    lines(&output.stdout).find_map(artifact).unwrap()
}

/// What the compiler says about a case, without the places in the library where a bound is.
fn errors(case: &Path, library: &Path) -> String {
    let output = compiler()
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata"])
        .args(["--error-format=json", "--cap-lints=allow"])
        .arg(format!("--extern=lambda_idempotency={}", library.display()))
        .arg(format!("-Ldependency={}", library.parent().unwrap().display()))
        .arg(format!("--out-dir={}", env!("CARGO_TARGET_TMPDIR")))
        .arg(case)
        .output()
        .unwrap();
    let mut text = String::new();
    for error in lines(&output.stderr).filter(|line| line["spans"][0].is_object()) {
        let code = error["code"]["code"].as_str().map(|code| format!("[{code}]"));
        let message = error["message"].as_str().unwrap();
        text += &format!("error{}: {message}\n", code.unwrap_or_default());
        let spans = error["spans"].as_array().unwrap();
        for span in spans.iter().filter(|span| span["is_primary"] == true) {
            let source = span["text"][0]["text"].as_str().unwrap().trim();
            text += &format!("    {source}\n");
            if let Some(label) = span["label"].as_str() {
                text += &format!("    ^ {label}\n");
            }
        }
        let labels = spans.iter().filter_map(|span| span["label"].as_str());
        for missing in labels.filter(|label| label.starts_with("argument #")) {
            text += &format!("    ^ {missing}\n");
        }
        for child in error["children"].as_array().unwrap() {
            let (level, message) = (child["level"].as_str().unwrap(), child["message"].as_str());
            let message = message.unwrap().lines().map(str::trim).collect::<Vec<_>>().join(", ");
            let is_of_library = [
                "required",
                "method defined here",
                "the full name for the type",
                "consider using `--verbose`",
            ];
            if !is_of_library.iter().any(|it| message.starts_with(it)) {
                text += &format!("  = {level}: {message}\n");
            }
        }
    }
    assert!(!text.is_empty(), "it compiles: {}", case.display());
    text.replace(case.to_str().unwrap(), "case.rs")
}

#[test]
fn the_compiler_says_what_is_wrong() {
    let version = compiler().arg("--version").output().unwrap();
    if !version.stdout.starts_with(COMPILER.as_bytes()) {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let cases = fs::read_dir(folder.join("cases")).unwrap();
    let mut cases: Vec<PathBuf> = cases.map(|case| case.unwrap().path()).collect();
    cases.sort();
    let library = library();
    let mut said = String::new();
    for case in &cases {
        let source = fs::read_to_string(case).unwrap();
        let what = source.lines().next().unwrap().trim_start_matches("//! ");
        let name = case.file_name().unwrap().to_str().unwrap();
        said += &format!("## {name}: {what}\n{}\n", errors(case, &library));
    }
    let expected = folder.join("expected.txt");
    if env::var_os("RECORD_MISTAKES").is_some() {
        fs::write(&expected, &said).unwrap();
    }
    let expected = fs::read_to_string(expected).unwrap();
    for (said, expected) in said.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(said, expected);
    }
    assert_eq!(said.len(), expected.len());
}
