//! `lambda-idempotency`: run a function locally, let everything go wrong.
//!
//! One file or folder a subcommand: its arguments, what it does, how it shows the result.

mod arguments;
mod chaos;
mod failure;
mod invoke;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Makes AWS Lambda handlers safe to call twice.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Invoke(invoke::Arguments),
    Chaos(chaos::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let command = async {
        match Cli::parse().command {
            Command::Invoke(arguments) => invoke::run(arguments).await,
            Command::Chaos(arguments) => chaos::run(arguments).await,
        }
    };
    // What is dropped here takes its child processes with it.
    let done = tokio::select! {
        done = command => done,
        () = interrupted() => return ExitCode::from(130),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            failure.tell();
            ExitCode::from(2)
        }
    }
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
