//! SQS: a batch of messages, answered with the ids of those that have to come again.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

use std::{borrow::Cow, sync::Arc};

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse};
use lambda_idempotency_core::{
    call::RecordId,
    outcome::{Outcome, Rejection},
    policy::Conflict,
};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{Envelope, Member, Record, Source, all_or_error, delivers, object, text};
use crate::{error::InvocationError, operation::Operation};

pub(crate) struct Sqs;

const NAME: &str = "sqs";

/// What stands for an id that is missing; such a record can never be reported by id.
const NO_ID: &str = "";

#[derive(Default, Deserialize)]
struct Message<'e> {
    #[serde(rename = "messageId", borrow, default)]
    id: Member<'e>,
    #[serde(borrow, default)]
    body: Member<'e>,
    #[serde(rename = "eventSourceARN", borrow, default)]
    queue: Member<'e>,
    #[serde(borrow, default)]
    attributes: Member<'e>,
}

#[derive(Default, Deserialize)]
struct Attributes<'e> {
    #[serde(rename = "MessageGroupId", borrow, default)]
    group: Member<'e>,
}

impl Source for Sqs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn conflict(&self) -> Conflict {
        Conflict::Retry
    }

    fn recognises(&self, event: &Envelope<'_>, operation: &Operation) -> bool {
        delivers("aws:sqs", event, operation)
    }

    fn records<'e>(&self, event: &Envelope<'e>) -> Vec<Record<'e>> {
        event.records().unwrap_or_default().iter().copied().map(read).collect()
    }

    fn respond(
        &self,
        records: &[RecordId],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError> {
        let returned = || records.iter().zip(outcomes).filter(|(_, o)| !o.is_acknowledged());
        let lost = |outcome: &Outcome| matches!(outcome, Outcome::Unavailable(_));
        // In a FIFO queue, the rest of a group whose head met the outage goes back with it.
        let held_up = |outcome: &Outcome| lost(outcome) || matches!(outcome, Outcome::Returned(_));
        let outage = outcomes.iter().any(lost) && outcomes.iter().all(held_up);
        // A message without an id cannot be named in the answer, and an empty name would mean
        // them all. With an outage of the store, an error makes the pollers slow down.
        let unnamed = returned().any(|(record, _)| &*record.id == NO_ID);
        if unnamed || outage {
            return all_or_error(NAME, records, outcomes);
        }
        let mut response = SqsBatchResponse::default();
        for (record, _) in returned() {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = record.id.to_string();
            if !response.batch_item_failures.contains(&failure) {
                response.batch_item_failures.push(failure);
            }
        }
        to_raw_value(&response).map_err(|_| InvocationError::Json { what: "the answer to SQS" })
    }
}

fn read(raw: &RawValue) -> Record<'_> {
    let message: Message<'_> = object(Some(raw));
    let queue = text(message.queue).unwrap_or_default();
    let id = text(message.id).unwrap_or(Cow::Borrowed(NO_ID));
    let payload = match (&*id, text(message.body)) {
        (NO_ID, _) => Err(Rejection::NoPayload("messageId")),
        (_, None) => Err(Rejection::NoPayload("body")),
        (_, Some(body)) => Ok(body),
    };
    // Fair queues have groups too, but keep no order.
    let ordered = queue.ends_with(".fifo");
    let group = text(object::<Attributes<'_>>(message.attributes).group).filter(|_| ordered);
    Record {
        id: RecordId::new(NAME, &*id).from_arn(Some(Arc::from(&*queue))),
        raw,
        payload,
        group: group.map(|group| Arc::from(&*group)),
        identity: vec![Cow::Borrowed(NAME), queue, id],
    }
}
