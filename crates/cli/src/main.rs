//! `lambda-idempotency`: makes events, shows their keys, runs a function locally, and tests it under faults.
//!
//! Each subcommand has one file or folder: its arguments, its work, and how it shows the result. Without the
//! feature `local` there are only `keys` and `event`.

#[cfg(feature = "local")]
mod arguments;
#[cfg(feature = "local")]
mod chaos;
mod event;
mod failure;
#[cfg(feature = "local")]
mod invoke;
mod keys;
#[cfg(feature = "local")]
mod report;
#[cfg(feature = "local")]
mod runtime;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Makes AWS Lambda handlers safe to call twice.
#[derive(Parser)]
#[command(name = "lambda-idempotency", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Keys(Box<keys::Arguments>),
    Event(event::Arguments),
    #[cfg(feature = "local")]
    Invoke(invoke::Arguments),
    #[cfg(feature = "local")]
    Chaos(chaos::Arguments),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Event(arguments) => event::run(&arguments),
        #[cfg(feature = "local")]
        Command::Invoke(arguments) => runtime::run_to_the_end(invoke::run(arguments)),
        #[cfg(feature = "local")]
        Command::Chaos(arguments) => runtime::run(chaos::run(arguments)),
    };
    done.unwrap_or_else(|failure| {
        failure.tell();
        ExitCode::from(2)
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
