//! `lambda-idempotency chaos`: runs a function under faults, and audits what it did.

mod arguments;
mod report;

use std::process::ExitCode;

use lambda_idempotency_chaos as chaos;
use lambda_idempotency_local::Build;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::{document, print};
pub(crate) use arguments::Arguments;

/// Runs the command: 0 if there is no violation, 1 if there is one.
pub(crate) async fn run(mut arguments: Arguments) -> Result<ExitCode, Failure> {
    let mut settings = arguments.settings()?;
    settings.check()?;
    arguments.function.release |= !cfg!(debug_assertions);
    let scripted = Build {
        package: Some("lambda-idempotency-tests".to_owned()),
        bin: Some("scripted_orders".to_owned()),
        ..Build::default()
    };
    let scripted = (!arguments.is_users_function()).then_some((scripted, CLONE));
    settings.binary = arguments.function.binary(scripted, false).await?;
    let done = Progress::new(settings.deliveries as u64, "messages");
    let ran = chaos::run(&settings, |settled| done.set(settled as u64));
    let report = done.during(ran, arguments.json).await?;
    print(&if arguments.json {
        document(&serde_json::to_value(&report)?)
    } else {
        format!("{}\n", report::summary(&report))
    })?;
    let is_right = report.findings.violations.is_empty();
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What to do if the scripted orders function is not here.
const CLONE: &str = "Run this in a clone of the repository, which has the scripted orders function, or run your own function with
  `--sqs-body FILE --vary MEMBER` or `--event EVENT.json --vary MEMBER`.";
