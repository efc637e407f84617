//! `lambda-idempotency chaos`: runs a function under faults, and audits what it did.

mod arguments;
mod page;

use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lambda_idempotency_chaos::{Error, Progress, Report, Settings, run_until};
use lambda_idempotency_local::Build;

use crate::failure::Failure;
use crate::progress::Progress as Bar;
use crate::runtime::{INTERRUPTED, interrupted};
use crate::terminal::{document, print, printable};
pub(crate) use arguments::Arguments;

/// Runs the command: 0 if no run shows a violation, 1 if one does. The first signal ends it, once what it has made in the
/// server of a URL is removed.
pub(crate) async fn run(mut arguments: Arguments) -> Result<ExitCode, Failure> {
    crate::report::check(arguments.report.as_deref())?;
    let mut settings = arguments.settings()?;
    settings.check()?;
    arguments.function.release |= !cfg!(debug_assertions);
    let scripted = Build {
        package: TESTS.map(str::to_owned),
        bin: SCRIPTED.map(str::to_owned),
        ..Build::default()
    };
    let scripted = (!arguments.is_users_function()).then_some((scripted, CLONE));
    let mut stop = pin!(interrupted());
    settings.binary = tokio::select! {
        binary = arguments.function.binary(scripted, false) => binary?,
        () = &mut stop => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let until = Instant::now() + Duration::from_secs(arguments.minutes.saturating_mul(60));
    let mut violated = false;
    loop {
        let Some(report) = watch(&settings, arguments.json, stop.as_mut()).await? else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        violated |= !report.findings.violations.is_empty();
        print(&if arguments.json {
            document(&serde_json::to_value(&report)?)
        } else {
            format!("{}\n", printable(&report.to_string()))
        })?;
        if let (Some(path), Some(story)) = (&arguments.report, &report.story) {
            crate::report::write(&page::run(&report, story), path).await?;
        }
        if Instant::now() >= until {
            return Ok(if violated { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        settings.seed = settings.seed.wrapping_add(1);
    }
}

/// Runs once, with a progress bar; `None` if it is stopped.
async fn watch(
    settings: &Settings,
    hidden: bool,
    stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<Option<Report>, Failure> {
    let bar = Bar::new(settings.deliveries as u64, "messages");
    let progress = |progress: Progress| bar.set(progress.settled as u64);
    let ran = bar.during(run_until(settings, progress, stop), hidden).await;
    match ran {
        Ok(report) => Ok(Some(report)),
        Err(Error::Stopped) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The package and the binary of the scripted orders function.
const TESTS: Option<&str> = Some("lambda-idempotency-tests");
const SCRIPTED: Option<&str> = Some("scripted_orders");

/// What to do if the scripted orders function is not here.
const CLONE: &str = "Run this in a clone of the repository, which has the scripted orders function, or run your own function with
  `--sqs-body FILE --vary MEMBER` or `--event EVENT.json --vary MEMBER`.";
