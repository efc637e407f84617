//! Commands that wait for something, until they are done or the user ends them.

use std::process::ExitCode;

use crate::failure::Failure;

/// Runs a command to its end, or to the first signal: exit code 130.
pub(crate) fn run(
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    tokio::runtime::Runtime::new()?.block_on(async {
        // What is dropped here takes its child processes with it.
        tokio::select! {
            done = command => done,
            () = interrupted() => Ok(ExitCode::from(130)),
        }
    })
}

/// Ends when the user or the system asks this process to.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = tokio::signal::ctrl_c() => return,
            }
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
