//! A function's build with `panic = "abort"` is refused; the message contains the lines to add.

use std::process::Command;

/// Compiles only the file with the check, with this profile and these features.
fn compile(panic: &str, features: &[&str]) -> Result<(), String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "-Adead_code"])
        .args(["--out-dir", env!("CARGO_TARGET_TMPDIR")])
        .arg(format!("-Cpanic={panic}"))
        .args(features.iter().map(|name| format!("--cfg=feature=\"{name}\"")))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/unwinding.rs"))
        .output()
        .unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8(output.stderr).unwrap()) }
}

#[test]
fn a_build_that_aborts_on_panic_is_refused_with_the_two_lines_to_add() {
    let refused = compile("abort", &["runs-handlers"]).unwrap_err();
    for line in ["[profile.release]", "panic = \"unwind\"", "feature `panic-abort`"] {
        assert!(refused.contains(line), "{refused}");
    }
}

#[test]
fn a_build_that_unwinds_is_not_refused() {
    assert_eq!(compile("unwind", &["runs-handlers"]), Ok(()));
}

#[test]
fn a_build_that_aborts_is_accepted_with_the_feature_panic_abort() {
    assert_eq!(compile("abort", &["runs-handlers", "panic-abort"]), Ok(()));
}

#[test]
fn a_producer_may_abort() {
    assert_eq!(compile("abort", &[]), Ok(()));
}

/// Without this, the tests above would not show that the library has the check.
#[test]
fn the_library_turns_the_check_on() {
    assert!(include_str!("../../src/lib.rs").lines().any(|line| line == "mod unwinding;"));
    let library = include_str!("../../../lambda/Cargo.toml");
    for line in [
        r#"lambda-idempotency-keys = { workspace = true, features = ["runs-handlers"] }"#,
        r#"panic-abort = ["lambda-idempotency-keys/panic-abort"]"#,
    ] {
        assert!(library.lines().any(|one| one == line), "{line}");
    }
}
