//! `records redrive`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use lambda_idempotency_core::{clock::Timestamp, record::IdempotencyRecord};

use super::{
    change::Decision, connect::Table, edit, envelopes, evict::EVICT, state::State, target,
};
use crate::{
    failure::Failure,
    keys::{self, KeyOptions},
};

/// Reset the idempotency records of failed events, so that they are processed when they are delivered again
///
/// Takes what a dead-letter queue or a failure destination holds: the answer of `aws sqs receive-message`, records of
/// Lambda destinations, events; one document or several. Computes the keys as `keys` does, so say what the operation
/// says. Deletes the records of permanent failures and of attempts that were lost or given up; leaves completed ones,
/// because their work is done; refuses those that a worker holds. It does not deliver anything: move the queue
/// afterwards. Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Files of failed events; `-` is standard input
    #[arg(required = true, value_name = "FAILED.json")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    options: KeyOptions,

    /// Do it
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let mut keys = Vec::new();
    for path in &arguments.files {
        let in_file = |failure: Failure| failure.in_file(path);
        let events = envelopes::events(&keys::read(path)?).map_err(|e| in_file(e.into()))?;
        for event in events {
            let found = target::of_event(&arguments.options, &event.to_string());
            keys.extend(found.map_err(in_file)?);
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    keys.retain(|key| seen.insert(key.clone()));
    edit::run(table, keys, &EVICT, arguments.yes, as_json, decide).await
}

fn decide(found: Option<&IdempotencyRecord>, now: Timestamp) -> Decision {
    match found.map(|record| State::of(record, now)) {
        None | Some(State::Expired) => {
            Decision::Nothing("its next delivery is new work".to_owned())
        }
        Some(State::Completed) => Decision::Nothing(
            "the work is done, and its next delivery is answered; `evict` has it done again"
                .to_owned(),
        ),
        Some(State::InProgress) => Decision::Refuse("a worker holds the key".to_owned()),
        Some(State::Lapsed | State::Released | State::Failed | State::Unreadable) => {
            Decision::Write(None)
        }
    }
}
