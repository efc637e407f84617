//! `records release`

use std::process::ExitCode;

use clap::Args;
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Owner},
};

use super::{
    change::{Decision, given_up},
    connect::Table,
    edit::{self, Acting, How, Verb},
    state::State,
    target::Target,
};
use crate::failure::Failure;

/// Give up claims in the name of workers that are dead, so that the next delivery need not wait for their leases
///
/// The counts of attempts are kept, and an attempt whose worker did not give the key up itself counts as lost: it may
/// have had its effect, and the handler of the next delivery is told so. A claim whose lease stands is refused without `--even-if-held`: if its worker lives
/// after all, the work is done twice. Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Also claims whose lease stands: I know that their workers are dead
    #[arg(long)]
    even_if_held: bool,

    #[command(flatten)]
    acting: Acting,
}

const RELEASE: Verb = Verb {
    done: "released: the next delivery tries again",
    plan: "release",
    note: "An attempt of which nothing was heard counts as lost (`Call::lost_attempts`).",
};

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let keys = arguments.target.keys()?;
    // By this token the record differs from every earlier one.
    let by = Owner::random()?;
    let how = How { acting: &arguments.acting, as_json };
    edit::run(table, (keys, Vec::new()), &RELEASE, how, |_, found, now| {
        decide(found, now, arguments.even_if_held, by)
    })
    .await
}

fn decide(
    found: Option<&IdempotencyRecord>,
    now: Timestamp,
    even_if_held: bool,
    by: Owner,
) -> Decision {
    let Some(found) = found else {
        return Decision::Nothing("the key has no idempotency record".to_owned());
    };
    match State::of(found, now) {
        State::Released | State::Expired => Decision::Nothing("the key is free".to_owned()),
        State::Completed => Decision::Refuse("the work is done; `evict` has it done again".to_owned()),
        State::Failed => Decision::Refuse(
            "it failed permanently; `evict` has it tried again from the beginning".to_owned(),
        ),
        State::InProgress if !even_if_held => Decision::Refuse(
            "its lease stands, and its worker may be at work; if you know that it is dead, add --even-if-held"
                .to_owned(),
        ),
        State::InProgress | State::Lapsed | State::Unreadable => {
            Decision::Write(Some(given_up(found, by)))
        }
    }
}
