//! Runs asynchronous commands until they end or the user stops them.

use std::{io, process::ExitCode, sync::atomic::Ordering, time::Duration};

use tokio::{runtime::Runtime, time::sleep};

use crate::{failure::Failure, input::IS_WAITED_FOR};

/// Runs a command to its end, or to the first signal: exit code 130.
pub(crate) fn run(
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    runtime()?.block_on(async {
        // Dropping the command's future kills its child processes.
        tokio::select! {
            biased; // a command may take a second until it waits for something, and a signal comes meanwhile
            () = interrupted() => Ok(ExitCode::from(INTERRUPTED)),
            done = command => done,
        }
    })
}

/// Runs a command that handles signals itself, because it has something to say first.
pub(crate) fn run_to_the_end(
    command: impl Future<Output = Result<ExitCode, Failure>>,
) -> Result<ExitCode, Failure> {
    runtime()?.block_on(command)
}

/// A runtime that ends this process at a signal while standard input is read. The thread that reads it sees no signal.
fn runtime() -> io::Result<Runtime> {
    let runtime = Runtime::new()?;
    runtime.spawn(async {
        interrupted().await;
        while !IS_WAITED_FOR.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(20)).await;
        }
        std::process::exit(INTERRUPTED.into());
    });
    Ok(runtime)
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
