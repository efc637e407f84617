//! What the compiler says about mistakes of users: `cases` has one file for each, `expected.txt` the errors. Set
//! `RECORD_MISTAKES` to write them down again.
//!
//! The cases are compiled against the library that this test is linked with. Other compilers say it in other words, so
//! that the test compares those of one version alone.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::{
    env,
    ffi::OsStr,
    fs,
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

/// The library that this program is linked with: beside it, the newest that is not newer. Cargo would say which it is, but
/// waits for whatever else compiles.
fn library() -> PathBuf {
    let program = env::current_exe().unwrap();
    let written = |file: &PathBuf| fs::metadata(file).unwrap().modified().unwrap();
    let last = written(&program);
    let files = fs::read_dir(program.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    let is_library = |file: &PathBuf| {
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("liblambda_idempotency-") && name.ends_with(".rlib")
    };
    files.filter(is_library).filter(|file| written(file) <= last).max_by_key(written).unwrap()
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
