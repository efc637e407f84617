//! What the tests share: the scripted function, built once.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;
use std::time::Duration;

use lambda_idempotency_local::{Build, FunctionConfig, Local};
use tokio::sync::OnceCell;

/// Longer than any test takes: nothing should ever wait for it to pass.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The function of `examples/scripted.rs`, with time enough.
pub(crate) async fn scripted() -> FunctionConfig {
    static BINARY: OnceCell<PathBuf> = OnceCell::const_new();
    let build = Build::example(env!("CARGO_PKG_NAME"), "scripted");
    let binary = BINARY.get_or_try_init(|| build.run()).await.unwrap();
    FunctionConfig::new(binary).timeout(LONG).init_timeout(LONG)
}

pub(crate) async fn local(function: FunctionConfig) -> Local {
    Local::builder(function).start().await.unwrap()
}

/// Whether a process exists and is more than a name on the list of the dead.
pub(crate) fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim_start().is_empty() && !rest.trim_start().starts_with('Z'))
}
