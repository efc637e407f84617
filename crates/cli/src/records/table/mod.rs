//! `records table`: makes a table, or says what is wrong with one.

mod check;
mod create;

use std::process::ExitCode;

use clap::{Args, Subcommand};

#[cfg(feature = "prove")]
pub(crate) use check::problems;

use super::connect::Options;
use crate::failure::Failure;

/// Create the table, or check that it is as the store needs it
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Check(check::Arguments),
    Create(create::Arguments),
}

pub(crate) async fn run(
    connection: &Options,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    match &arguments.verb {
        Verb::Check(arguments) => check::run(connection, arguments, as_json).await,
        Verb::Create(arguments) => create::run(connection, arguments, as_json).await,
    }
}
