//! `records show`, `free`, `release` and `redrive`: what each does with a record.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use lambda_idempotency_core::{
    admission::{Claim, Finding, free},
    clock::Timestamp,
    key::Key,
    policy::Policy,
    record::{IdempotencyRecord, Owner},
};
use serde_json::{Value, json};

use super::{
    change::{self, Decision, Verb, given_up, reset},
    connect::Table,
    envelopes::{self, Notified, may_be_of_a_subscription},
    target::{self, Asked, Target, each_once},
    view::{self, State, print, print_json},
};
use crate::{
    failure::Failure,
    keys::{KeyOptions, Stored},
    terminal,
};

/// How long processes may answer from memory what was freed.
const WARM_CACHES: &str = "Processes that saw a key completed answer it from memory for up to 60 seconds more \
     (`Idempotency::with_cache`).";
const NO_RECORD: &str = "the key has no idempotency record";
const NEW_WORK: &str = "its next delivery is new work";

/// Free keys: delete their idempotency records, so that the next delivery is new work
///
/// Refuses a key that a worker holds, and one whose work is done and whose messages are not all sent. The counts of
/// attempts and finished steps are forgotten too. It does not deliver anything: send the
/// event again, or move the dead-letter queue. Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Free {
    #[command(flatten)]
    target: Target,

    /// Also records with messages that are not sent yet: they are lost
    #[arg(long)]
    even_if_unsent: bool,

    /// Do it
    #[arg(long)]
    yes: bool,
}

impl Free {
    const VERB: Verb =
        Verb { done: "freed: the next delivery is new work", plan: "free", note: WARM_CACHES };

    pub(crate) async fn run(&self, table: &Table, as_json: bool) -> Result<ExitCode, Failure> {
        let keys = (self.target.keys()?, Vec::new());
        change::run(table, keys, &Self::VERB, self.yes, as_json, |_, found, now| {
            freed(found, now, self.even_if_unsent)
        })
        .await
    }
}

fn freed(found: Option<&IdempotencyRecord>, now: Timestamp, even_if_unsent: bool) -> Decision {
    // It may belong to any application.
    let application = found.and_then(|found| found.application.clone());
    match free(&Claim::reading(application, Policy::default().clock_skew), found, now) {
        Ok(None) => Decision::nothing(NO_RECORD),
        Err(Finding::Held { .. }) => Decision::refuse(
            "a worker holds the key; wait until its lease ends, or look at its log stream",
        ),
        Err(Finding::Unsent(_)) if !even_if_unsent => Decision::refuse(
            "the work is done, and its messages are not all sent: the next delivery sends them; --even-if-unsent loses \
             them",
        ),
        Ok(Some(_)) | Err(_) => Decision::Write(None),
    }
}

/// Give up claims in the name of workers that are dead, so that the next delivery need not wait for their leases
///
/// The counts of attempts are kept, and an attempt whose worker did not give the key up itself counts as lost: it may
/// have had its effect, and the handler of the next delivery is told so. A claim whose lease stands is refused without `--even-if-held`: if its worker lives
/// after all, the work is done twice. Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Release {
    #[command(flatten)]
    target: Target,

    /// Also claims whose lease stands: I know that their workers are dead
    #[arg(long)]
    even_if_held: bool,

    /// Do it
    #[arg(long)]
    yes: bool,
}

impl Release {
    const VERB: Verb = Verb {
        done: "released: the next delivery tries again",
        plan: "release",
        note: "An attempt of which nothing was heard counts as lost (`Call::lost_attempts`).",
    };

    pub(crate) async fn run(&self, table: &Table, as_json: bool) -> Result<ExitCode, Failure> {
        let keys = (self.target.keys()?, Vec::new());
        // By this token the record differs from every earlier one.
        let by = Owner::random()?;
        change::run(table, keys, &Self::VERB, self.yes, as_json, |_, found, now| {
            let Some(found) = found else { return Decision::nothing(NO_RECORD) };
            match State::of(found, now) {
                State::Released | State::Expired => Decision::nothing("the key is free"),
                State::Completed => Decision::refuse("the work is done; `free` has it done again"),
                State::Failed => Decision::refuse(
                    "it failed permanently; `free` has it tried again from the beginning",
                ),
                State::InProgress if !self.even_if_held => Decision::refuse(
                    "its lease stands, and its worker may be at work; if you know that it is dead, add --even-if-held",
                ),
                State::InProgress | State::Lapsed | State::Unreadable => {
                    Decision::Write(Some(given_up(found, by)))
                }
            }
        })
        .await
    }
}

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
pub(crate) struct Redrive {
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
    stored: Stored,

    /// Do it
    #[arg(long)]
    yes: bool,
}

impl Redrive {
    const VERB: Verb = Verb {
        done: "reset: the next delivery begins from the beginning",
        plan: "reset",
        note: WARM_CACHES,
    };

    pub(crate) async fn run(&self, table: &Table, as_json: bool) -> Result<ExitCode, Failure> {
        let notified = if self.sns_subscription { Notified::Function } else { Notified::Queue };
        let (mut asked, mut keyless) = (Vec::new(), Vec::new());
        for path in &self.files {
            let in_file = |failure: Failure| failure.in_file(path);
            let events = envelopes::events(&terminal::read(path)?, notified)
                .map_err(|e| in_file(e.into()))?;
            // With `--envelope sns` the user has said that the queue is subscribed to the topic.
            if self.stored.envelope.is_empty()
                && events.iter().any(|one| may_be_of_a_subscription(one))
            {
                terminal::tell(format_args!("note: {}: {OF_WHOM}", path.display()));
            }
            for event in events {
                for found in
                    target::of_event(&self.options, &self.stored, &event).map_err(in_file)?
                {
                    match found {
                        Ok(found) => asked.push(found),
                        Err(found) => keyless.push(found),
                    }
                }
            }
        }
        let by = Owner::random()?;
        let keys = (each_once(asked), keyless);
        change::run(table, keys, &Self::VERB, self.yes, as_json, |asked, found, now| {
            redriven(asked, found, now, by)
        })
        .await
    }
}

const OF_WHOM: &str =
    "messages with notifications of SNS, which no queue moved here. If the function itself is
      subscribed to the topic, their keys are those of SNS: add --sns-subscription.";

fn redriven(
    asked: &Asked,
    found: Option<&IdempotencyRecord>,
    now: Timestamp,
    by: Owner,
) -> Decision {
    let Some(found) = found else { return Decision::nothing(NEW_WORK) };
    let is_another = asked.fingerprint.is_some()
        && found.fingerprint.is_some()
        && asked.fingerprint != found.fingerprint;
    match State::of(found, now) {
        State::Expired => Decision::nothing(NEW_WORK),
        State::InProgress => Decision::refuse("a worker holds the key"),
        State::Completed | State::Failed if is_another => Decision::refuse(
            "the record of the key has another fingerprint: it is of other work, which keeps it",
        ),
        State::Completed if asked.is_message_id => Decision::refuse(
            "the work is done, and a redrive would have it done again: it gives the message a new id, and the id is \
             the key. Delete the message from the dead-letter queue instead",
        ),
        State::Completed if found.outbox.is_some() => Decision::nothing(
            "the work is done, and its next delivery sends the messages that are left",
        ),
        State::Completed => Decision::nothing(
            "the work is done, and its next delivery is answered; `free` has it done again",
        ),
        State::Lapsed | State::Released | State::Failed | State::Unreadable => {
            Decision::Write(reset(found, now, by))
        }
    }
}

/// Show the idempotency records of keys, or of the records of an event
///
/// With `--event` the keys are made as the function makes them; say what its operation says (`--operation`, `--key`, and
/// so on), as for `lambda-idempotency keys`. Exit code 1: a key has no record.
#[derive(Args)]
pub(crate) struct Show {
    #[command(flatten)]
    target: Target,

    /// Show results, also those of steps, and the bodies of unsent messages, which may hold personal data
    #[arg(long)]
    show_result: bool,
}

pub(crate) async fn show(
    table: &Table,
    arguments: &Show,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let keys = arguments.target.keys()?;
    let found = table_records(table, &keys).await?;
    let now = table.now();
    let is_complete = found.iter().all(|(_, entry)| entry.is_some());
    if as_json {
        let records = found.iter().map(|(key, entry)| match entry {
            Some(entry) => view::json(entry, now, arguments.show_result),
            None => json!({
                "key": key.as_str(), "operation": view::operation(key), "state": Value::Null,
            }),
        });
        print_json(&json!({ "records": records.collect::<Vec<_>>() }))?;
    } else {
        let pages = found.iter().map(|(key, entry)| match entry {
            Some(entry) => view::text(entry, now, arguments.show_result),
            None => view::absent(key, "no record: the next delivery is new work"),
        });
        print(&pages.collect::<Vec<_>>().join("\n"))?;
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The record of each key; an item that cannot be read is shown as such.
async fn table_records(
    table: &Table,
    asked: &[Asked],
) -> Result<Vec<(Key, Option<view::Entry>)>, Failure> {
    let found = target::look_up(table, asked).await?;
    let entry = |key: &Key, found| view::Entry { key: key.clone(), found };
    let all = asked.iter().zip(found).map(|(Asked { key, .. }, found)| {
        (key.clone(), found.transpose().map(|found| entry(key, found)))
    });
    Ok(all.collect())
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::record::Status;

    use super::*;

    #[test]
    fn messages_that_are_not_sent_are_not_lost_unless_that_is_said() {
        let now = Timestamp::from_secs(1000);
        let done = IdempotencyRecord::new(Status::Completed, now);
        assert!(matches!(freed(Some(&done), now, false), Decision::Write(None)));
        let mut unsent = done;
        unsent.outbox = Some("[]".into());
        assert!(matches!(freed(Some(&unsent), now, false), Decision::Refuse(_)));
        assert!(matches!(freed(Some(&unsent), now, true), Decision::Write(None)));
    }
}
