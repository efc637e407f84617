//! The function of a local run: built, with its settings, and started.

use std::path::{Path, PathBuf};

use lambda_idempotency_local::{AsyncConfig, FunctionConfig, Local, LocalBuilder, SqsConfig};

use super::Arguments;
use crate::failure::Failure;

/// The path of the function's binary: the one given, or the package's after building it.
pub(crate) async fn binary(arguments: &Arguments) -> Result<PathBuf, Failure> {
    if let Some(binary) = &arguments.binary {
        // A name alone would be looked for in PATH, and not in this directory.
        return Ok(std::path::absolute(binary)?);
    }
    let with_remedy = |error| Failure::from(error).remedy(REMEDY);
    let build = arguments.target().find(".").await.map_err(with_remedy)?;
    let build = build.features(arguments.features.iter().cloned());
    build.release(arguments.release).quiet(arguments.quiet).run().await.map_err(with_remedy)
}

/// What to do if the function cannot be built.
pub(crate) const REMEDY: &str = "Run this in the directory of the function's package, or name its package or binary with `--package NAME`
  or `--bin NAME`, or give a built binary with `--binary PATH`.";

/// A local Lambda with the settings that the arguments ask for.
pub(crate) fn local(arguments: &Arguments, binary: &Path) -> LocalBuilder {
    let mut function = FunctionConfig::new(binary)
        .timeout(arguments.timeout)
        .env("ORDERS_TABLE", "orders")
        // The user has the events on this machine, so error messages may show parts of them.
        .env("IDEMPOTENCY_LOG_ERROR_MESSAGES", "1");
    function = match &arguments.store {
        Some(store) => function.env("IDEMPOTENCY_STORE", store),
        None => function.env("IDEMPOTENCY_TABLE", "idempotency"),
    };
    if arguments.report.is_some() {
        function = function.env("IDEMPOTENCY_REPORT_EFFECTS", "1");
    }
    for (name, value) in &arguments.env {
        function = function.env(name, value);
    }
    let sqs = SqsConfig {
        visibility: arguments.visibility,
        batch_size: arguments.batch_size,
        max_receive_count: arguments.max_receive_count,
        ..SqsConfig::default()
    };
    let local = Local::builder(function)
        .sandboxes(arguments.concurrency)
        .sqs(sqs)
        .asynchronous(AsyncConfig { retry_delays: arguments.retry_delays.clone() });
    arguments.tables().into_iter().fold(local, LocalBuilder::table)
}
