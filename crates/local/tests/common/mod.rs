//! Helpers of the tests: the scripted function, built once.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses a part, and may panic")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use lambda_idempotency_local::{FunctionConfig, Local};
use tokio::sync::OnceCell;

/// Longer than any test takes, so no test waits until it has passed.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The function of `examples/scripted.rs`, with a long timeout.
pub(crate) async fn scripted() -> FunctionConfig {
    static BINARY: OnceCell<PathBuf> = OnceCell::const_new();
    let binary = BINARY.get_or_init(binary).await;
    FunctionConfig::new(binary).timeout(LONG).init_timeout(LONG)
}

/// The path of the built function. `cargo test` builds it beside the tests; otherwise this builds it, with the features of
/// the workspace: with its own, the embedded DynamoDB would be compiled once more.
pub(crate) async fn binary() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../local");
    let built = std::env::current_exe().unwrap().parent().unwrap().join("../examples/scripted");
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    if modified(&built) > modified(&package.join("examples/scripted.rs")) {
        return built;
    }
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--workspace", "--example", "scripted"]);
    assert!(cargo.current_dir(package.join("../..")).status().unwrap().success());
    built
}

pub(crate) async fn local(function: FunctionConfig) -> Local {
    Local::builder(function).start().await.unwrap()
}

/// Whether a process exists and is not a zombie.
pub(crate) fn is_running(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Waits until a process runs (`R`), sleeps (`S`), is stopped (`T`) or dead (`Z`).
pub(crate) async fn reaches_state(pid: u32, wanted: char) {
    while state(pid) != Some(wanted) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}
