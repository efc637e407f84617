//! Runs asynchronous commands until they end or the user stops them.

#[cfg(unix)]
use std::task::Poll;
use std::{io, process::ExitCode, sync::atomic::Ordering, time::Duration};

use tokio::{runtime::Runtime, time::sleep};

use crate::{failure::Failure, terminal::IS_WAITED_FOR};

/// Runs a command to its end, or to the first signal: exit code 130.
#[cfg(any(feature = "chaos", feature = "records"))]
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
#[cfg(feature = "local")]
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

/// Completes when this process gets a signal to end, or its terminal is closed: the function that it runs, which has a
/// process group of its own, would go on.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()];
        if !ignores_hangups() {
            kinds.push(SignalKind::hangup());
        }
        let mut signals: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
        std::future::poll_fn(|context| {
            let came = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if came { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Whether this process was started by `nohup`, where the system says so. Shells start what runs in the background with
/// other signals ignored; those end it all the same.
#[cfg(unix)]
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 1 == 1 // it is signal 1
}
