//! `records redrive`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Owner},
};

use super::{
    change::{Decision, reset},
    connect::Table,
    edit::{self, Acting, How, Verb, WARM_CACHES},
    envelopes::{self, Notified},
    received::may_be_of_a_subscription,
    state::State,
    target::{self, Asked, each_once},
};
use crate::{
    failure::Failure,
    keys::{self, KeyOptions},
};

/// Reset the idempotency records of failed events, so that they are processed when they are delivered again
///
/// Takes what a dead-letter queue or a failure destination holds: the answer of `aws sqs receive-message`, records of
/// Lambda destinations, also through SNS and EventBridge, events; one document or several. Computes the keys as `keys`
/// does, so say what the operation says.
///
/// Resets the records of permanent failures and of attempts that were lost or given up; the handler of the next delivery
/// is still told of lost attempts, because they may have had their effects. Leaves completed records, because their work
/// is done; refuses those that a worker holds. Messages without a key are named, and do not keep the others from being
/// reset. It does not deliver anything: move the queue afterwards. Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Files of failed events; `-` is standard input
    #[arg(required = true, value_name = "FAILED.json")]
    files: Vec<PathBuf>,

    /// The messages are of the dead-letter queue of an SNS subscription of the function
    ///
    /// Their bodies look like those of a queue that is subscribed to the topic, whose keys are others.
    #[arg(long)]
    sns_subscription: bool,

    #[command(flatten)]
    options: KeyOptions,

    #[command(flatten)]
    acting: Acting,
}

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let notified = match arguments.sns_subscription {
        true => Notified::Function,
        false => Notified::Queue,
    };
    let (mut asked, mut keyless) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        let in_file = |failure: Failure| failure.in_file(path);
        let events =
            envelopes::events(&keys::read(path)?, notified).map_err(|e| in_file(e.into()))?;
        // With `--envelope sns` the user has said that the queue is subscribed to the topic.
        if arguments.options.envelope.is_empty()
            && events.iter().any(|one| may_be_of_a_subscription(one))
        {
            eprintln!("note: {}: {OF_WHOM}", path.display());
        }
        for event in events {
            for found in target::of_event(&arguments.options, &event).map_err(in_file)? {
                match found {
                    Ok(found) => asked.push(found),
                    Err(found) => keyless.push(found),
                }
            }
        }
    }
    let by = Owner::random()?;
    let how = How { acting: &arguments.acting, as_json };
    edit::run(table, (each_once(asked), keyless), &RESET, how, |asked, found, now| {
        decide(asked, found, now, by)
    })
    .await
}

const OF_WHOM: &str =
    "messages with notifications of SNS, which no queue moved here. If the function itself is
      subscribed to the topic, their keys are those of SNS: add --sns-subscription.";

const RESET: Verb = Verb {
    done: "reset: the next delivery begins from the beginning",
    plan: "reset",
    note: WARM_CACHES,
};

fn decide(asked: &Asked, found: Option<&IdempotencyRecord>, now: Timestamp, by: Owner) -> Decision {
    let Some(found) = found else { return Decision::Nothing(NEW_WORK.to_owned()) };
    let state = State::of(found, now);
    let is_another = asked.fingerprint.is_some()
        && found.fingerprint.is_some()
        && asked.fingerprint != found.fingerprint;
    match state {
        State::Expired => Decision::Nothing(NEW_WORK.to_owned()),
        State::InProgress => Decision::Refuse("a worker holds the key".to_owned()),
        State::Completed | State::Failed if is_another => Decision::Refuse(
            "the record of the key has another fingerprint: it is of other work, which keeps it".to_owned(),
        ),
        State::Completed if asked.is_message_id => Decision::Refuse(
            "the work is done, and a redrive would have it done again: it gives the message a new id, and the id is \
             the key. Delete the message from the dead-letter queue instead"
                .to_owned(),
        ),
        State::Completed if found.outbox.is_some() => Decision::Nothing(
            "the work is done, and its next delivery sends the messages that are left".to_owned(),
        ),
        State::Completed => Decision::Nothing(
            "the work is done, and its next delivery is answered; `evict` has it done again"
                .to_owned(),
        ),
        State::Lapsed | State::Released | State::Failed | State::Unreadable => {
            Decision::Write(reset(found, now, by))
        }
    }
}

const NEW_WORK: &str = "its next delivery is new work";
