//! `records evict`

use std::process::ExitCode;

use clap::Args;
use lambda_idempotency_core::{clock::Timestamp, record::IdempotencyRecord};

use super::{
    change::Decision,
    connect::Table,
    edit::{self, Acting, How, Verb, WARM_CACHES},
    state::State,
    target::Target,
};
use crate::failure::Failure;

/// Delete idempotency records, so that the next delivery of their keys is new work
///
/// Refuses a key that a worker holds. The counts of attempts are forgotten too. It does not deliver anything: send the
/// event again, or move the dead-letter queue. Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    acting: Acting,
}

const EVICT: Verb =
    Verb { done: "evicted: the next delivery is new work", plan: "evict", note: WARM_CACHES };

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let keys = arguments.target.keys()?;
    let how = How { acting: &arguments.acting, as_json };
    edit::run(table, (keys, Vec::new()), &EVICT, how, |_, found, now| decide(found, now)).await
}

fn decide(found: Option<&IdempotencyRecord>, now: Timestamp) -> Decision {
    match found.map(|record| State::of(record, now)) {
        None => Decision::Nothing("the key has no idempotency record".to_owned()),
        Some(State::InProgress) => Decision::Refuse(
            "a worker holds the key; wait until its lease ends, or look at its log stream"
                .to_owned(),
        ),
        Some(_) => Decision::Write(None),
    }
}
