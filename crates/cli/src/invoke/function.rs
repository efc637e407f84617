//! The function of a local run, with its settings.

use std::path::Path;

use lambda_idempotency_local::{FunctionConfig, Local, LocalBuilder, SqsConfig};

use super::Arguments;

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
    for (name, value) in &arguments.function.env {
        function = function.env(name, value);
    }
    let sqs = SqsConfig {
        visibility: arguments.visibility,
        batch_size: arguments.batch_size,
        max_receive_count: arguments.max_receive_count,
    };
    let local = Local::builder(function)
        .sandboxes(arguments.concurrency)
        .sqs(sqs)
        .retry_delays(arguments.retry_delays.clone());
    arguments.tables().into_iter().fold(local, LocalBuilder::table)
}
