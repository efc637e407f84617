//! Runs asynchronous commands until they end or the user stops them.

use std::process::ExitCode;

use crate::failure::Failure;

/// Runs a command to its end, or to the first signal: exit code 130.
pub(crate) fn run(
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    tokio::runtime::Runtime::new()?.block_on(async {
        // Dropping the command's future kills its child processes.
        tokio::select! {
            done = command => done,
            () = interrupted() => Ok(ExitCode::from(INTERRUPTED)),
        }
    })
}

/// Runs a command that handles signals itself, because it has something to say first.
pub(crate) fn run_to_the_end(
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    tokio::runtime::Runtime::new()?.block_on(command)
}

/// The exit code of a command that was stopped by a signal.
pub(crate) const INTERRUPTED: u8 = 130;

/// Completes when this process gets a signal to end.
pub(crate) async fn interrupted() {
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
