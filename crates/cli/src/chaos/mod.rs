//! `lambda-idempotency chaos`: runs a function under faults, and audits what it did.

mod arguments;
mod page;

use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lambda_idempotency_chaos::{Error, Progress, Report, Settings, run_until};
use lambda_idempotency_local::Build;

use crate::failure::Failure;
use crate::invoke::REMEDY;
use crate::runtime::{INTERRUPTED, interrupted};
use crate::terminal::{document, print, printable};
pub(crate) use arguments::Arguments;

/// Runs the command: 0 if no run shows a violation, 1 if one does. The first signal ends it, once what it has made in the
/// server of a URL is removed.
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    crate::report::check(arguments.report.as_deref())?;
    let mut settings = arguments.settings()?;
    settings.check()?;
    let mut stop = pin!(interrupted());
    settings.binary = tokio::select! {
        binary = binary(&arguments) => binary?,
        () = &mut stop => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let until = Instant::now() + Duration::from_secs(arguments.minutes.saturating_mul(60));
    let mut violated = false;
    loop {
        let Some(report) = watch(&settings, arguments.json, stop.as_mut()).await? else {
            return Ok(ExitCode::from(INTERRUPTED));
        };
        violated |= !report.violations.is_empty();
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
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(settings.deliveries as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} messages  {elapsed}") {
        bar.set_style(style);
    }
    let progress = |progress: Progress| bar.set_position(progress.settled as u64);
    let ran = run_until(settings, progress, stop).await;
    bar.finish_and_clear();
    match ran {
        Ok(report) => Ok(Some(report)),
        Err(Error::Stopped) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The package and the binary of the scripted orders function.
const TESTS: &str = "lambda-idempotency-tests";
const SCRIPTED: &str = "scripted_orders";

/// What to do if the scripted orders function is not here.
const CLONE: &str = "Run this in a clone of the repository, which has the scripted orders function, or run your own function with
  `--sqs-body FILE --vary MEMBER` or `--event EVENT.json --vary MEMBER`.";

/// The path of the function's binary: the one given, or the package's or the scripted orders function after building it.
async fn binary(arguments: &Arguments) -> Result<PathBuf, Failure> {
    if let Some(binary) = &arguments.binary {
        // A name alone would be looked for in PATH, and not in this directory.
        return Ok(std::path::absolute(binary)?);
    }
    let is_named = arguments.package.is_some() || arguments.bin.is_some();
    let remedy = if arguments.is_users_function() || is_named { REMEDY } else { CLONE };
    let with_remedy = |error| Failure::from(error).remedy(remedy);
    let build = if arguments.is_users_function() || is_named {
        arguments.target().find(".").await.map_err(with_remedy)?
    } else {
        Build::binary(TESTS, SCRIPTED)
    };
    build.release(!cfg!(debug_assertions)).quiet(false).run().await.map_err(with_remedy)
}
