//! `lambda-idempotency chaos`: runs a function under faults, and audits what it did.

mod arguments;
mod report;

use std::pin::pin;
use std::process::ExitCode;
use std::time::Instant;

use lambda_idempotency_chaos::{Error, Story, run_until};
use lambda_idempotency_local::Build;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::text;
use crate::runtime::{INTERRUPTED, interrupted};
use crate::terminal::{document, print};
pub(crate) use arguments::Arguments;

/// Runs the command: 0 if there is no violation, 1 if there is one. The first signal ends it, once what it has made in the
/// server of a URL is removed.
pub(crate) async fn run(mut arguments: Arguments) -> Result<ExitCode, Failure> {
    crate::report::check(arguments.report.as_deref())?;
    let mut settings = arguments.settings()?;
    settings.check()?;
    arguments.function.release |= !cfg!(debug_assertions);
    let scripted = Build {
        package: Some("lambda-idempotency-tests".to_owned()),
        bin: Some("scripted_orders".to_owned()),
        ..Build::default()
    };
    let scripted = (!arguments.is_users_function()).then_some((scripted, CLONE));
    let mut stop = pin!(interrupted());
    settings.binary = tokio::select! {
        binary = arguments.function.binary(scripted, false) => binary?,
        () = &mut stop => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let done = Progress::new(settings.deliveries as u64, "messages");
    let ran = run_until(&settings, |settled| done.set(settled as u64), stop);
    let ran = done.during(ran, arguments.json).await;
    let report = match ran {
        Ok(report) => report,
        Err(Error::Stopped) => return Ok(ExitCode::from(INTERRUPTED)),
        Err(error) => return Err(error.into()),
    };
    let nothing = Story::new(Instant::now());
    let run = report::run(&report, report.story.as_ref().unwrap_or(&nothing));
    print(&if arguments.json {
        document(&serde_json::to_value(&report)?)
    } else {
        format!("{}\n", text(&run))
    })?;
    if let Some(path) = &arguments.report {
        crate::report::write(&run, path).await?;
    }
    let is_right = report.findings.violations.is_empty();
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What to do if the scripted orders function is not here.
const CLONE: &str = "Run this in a clone of the repository, which has the scripted orders function, or run your own function with
  `--sqs-body FILE --vary MEMBER` or `--event EVENT.json --vary MEMBER`.";
