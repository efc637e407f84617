//! `records evict`

use std::process::ExitCode;

use clap::Args;
use lambda_idempotency_core::{
    admission::{Freeing, free},
    clock::Timestamp,
    policy::Policy,
    record::IdempotencyRecord,
};

use super::{
    change::Decision,
    connect::Table,
    edit::{self, Acting, How, Verb, WARM_CACHES},
    target::Target,
};
use crate::failure::Failure;

/// Delete idempotency records, so that the next delivery of their keys is new work
///
/// Refuses a key that a worker holds, and one whose work is done and whose messages are not all sent. The counts of
/// attempts and finished steps are forgotten too. It does not deliver anything: send the
/// event again, or move the dead-letter queue. Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Also records with messages that are not sent yet: they are lost
    #[arg(long)]
    even_if_unsent: bool,

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
    let even_if_unsent = arguments.even_if_unsent;
    edit::run(table, (keys, Vec::new()), &EVICT, how, |_, found, now| {
        decide(found, now, even_if_unsent)
    })
    .await
}

fn decide(found: Option<&IdempotencyRecord>, now: Timestamp, even_if_unsent: bool) -> Decision {
    match free(found, Policy::default().clock_skew, now) {
        Freeing::Nothing => Decision::Nothing("the key has no idempotency record".to_owned()),
        Freeing::Busy { .. } => Decision::Refuse(
            "a worker holds the key; wait until its lease ends, or look at its log stream"
                .to_owned(),
        ),
        Freeing::Unsent if !even_if_unsent => Decision::Refuse(
            "the work is done, and its messages are not all sent: the next delivery sends them; --even-if-unsent loses \
             them"
                .to_owned(),
        ),
        Freeing::Unsent | Freeing::Delete { .. } => Decision::Write(None),
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::record::Status;

    use super::*;

    #[test]
    fn messages_that_are_not_sent_are_not_lost_unless_that_is_said() {
        let now = Timestamp::from_secs(1000);
        let done = IdempotencyRecord::new(Status::Completed, now);
        assert!(matches!(decide(Some(&done), now, false), Decision::Write(None)));
        let mut unsent = done;
        unsent.outbox = Some("[]".into());
        assert!(matches!(decide(Some(&unsent), now, false), Decision::Refuse(_)));
        assert!(matches!(decide(Some(&unsent), now, true), Decision::Write(None)));
    }
}
