//! `records complete`

use std::{process::ExitCode, time::Duration};

use clap::Args;

use lambda_idempotency_core::{
    clock::Timestamp,
    policy::Policy,
    record::{IdempotencyRecord, Owner, Status},
};

use super::{
    change::Decision,
    connect::Table,
    edit::{self, Acting, How, Verb},
    state::State,
    target::{Asked, Target},
};
use crate::failure::Failure;

/// Record that work was done by hand, so that it is not done again
///
/// Later deliveries of the key are acknowledged, with the result if one is given. Refuses a key that a worker holds.
/// Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// The result that later deliveries get, as JSON
    #[arg(long, value_name = "JSON")]
    result: Option<String>,

    /// For how long, such as `24h` [default: 24 hours]
    #[arg(long, value_name = "DURATION", value_parser = retention)]
    retention: Option<Duration>,

    /// The application of a key that has no record yet: the name of the function, unless it has another
    #[arg(long, value_name = "NAME")]
    application: Option<String>,

    #[command(flatten)]
    acting: Acting,
}

const COMPLETE: Verb = Verb {
    done: "completed: later deliveries are answered from it",
    plan: "complete",
    note: "Later deliveries are acknowledged without a call of the handler.",
};

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    if let Some(result) = &arguments.result {
        serde_json::from_str::<serde_json::Value>(result)
            .map_err(|error| Failure::from(format!("--result is not JSON: {error}")))?;
    }
    let keys = arguments.target.keys()?;
    let by = Owner::random()?;
    let how = How { acting: &arguments.acting, as_json };
    edit::run(table, (keys, Vec::new()), &COMPLETE, how, |asked, found, now| {
        decide(asked, found, now, arguments, by)
    })
    .await
}

fn decide(
    asked: &Asked,
    found: Option<&IdempotencyRecord>,
    now: Timestamp,
    arguments: &Arguments,
    by: Owner,
) -> Decision {
    match found.map(|record| State::of(record, now)) {
        Some(State::InProgress) => {
            Decision::Refuse("a worker holds the key, and would complete it itself".to_owned())
        }
        Some(State::Completed) => Decision::Nothing("it is completed already".to_owned()),
        _ => {
            let retention = arguments.retention.unwrap_or(Policy::default().retention);
            let mut record = IdempotencyRecord::new(Status::Completed, now.plus(retention));
            record.owner = Some(by);
            record.fence = now.as_millis();
            record.lease_until = Some(now.ceil_to_second());
            record.result = arguments.result.as_deref().map(Into::into);
            record.application = arguments.application.as_deref().map(Into::into);
            record.fingerprint.clone_from(&asked.fingerprint);
            if let Some(found) = found {
                record.failed_attempts = found.failed_attempts;
                record.lost_attempts = found.lost_attempts;
                record.fence = record.fence.max(found.fence.saturating_add(1));
                record.fingerprint = record.fingerprint.or_else(|| found.fingerprint.clone());
                record.application = found.application.clone().or(record.application);
                record.provenance.clone_from(&found.provenance);
            }
            Decision::Write(Some(record))
        }
    }
}

/// DynamoDB counts whole seconds.
fn retention(text: &str) -> Result<Duration, String> {
    let retention = crate::arguments::time_to_work(text)?;
    if retention < Duration::from_secs(1) {
        Err("must be at least one second".to_owned())
    } else {
        Ok(retention)
    }
}
