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

use super::{Envelope, Record, Source, Text, all_or_error, delivers};
use crate::{error::InvocationError, operation::Operation};

pub(crate) struct Sqs;

const NAME: &str = "sqs";

/// What stands for an id that is missing; such a record can never be reported by id.
const NO_ID: &str = "";

#[derive(Deserialize)]
struct Message<'e> {
    #[serde(rename = "messageId", borrow, default)]
    id: Option<Text<'e>>,
    #[serde(borrow, default)]
    body: Option<Text<'e>>,
    #[serde(rename = "eventSourceARN", borrow, default)]
    queue: Option<Text<'e>>,
    #[serde(borrow, default)]
    attributes: Option<Attributes<'e>>,
}

#[derive(Deserialize)]
struct Attributes<'e> {
    #[serde(rename = "MessageGroupId", borrow, default)]
    group: Option<Text<'e>>,
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

    fn records<'e>(&self, event: &Envelope<'e>) -> Result<Vec<Record<'e>>, InvocationError> {
        let records = event.records.iter().flatten().enumerate();
        records.map(|(at, raw)| read(at, raw)).collect()
    }

    fn respond(
        &self,
        records: &[RecordId],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError> {
        let returned = || records.iter().zip(outcomes).filter(|(_, o)| !o.is_acknowledged());
        let outage = |outcome: &Outcome| matches!(outcome, Outcome::Unavailable(_));
        // A message without an id cannot be named in the answer, and an empty name would mean
        // them all. With an outage of the store, an error makes the pollers slow down.
        let unnamed = returned().any(|(record, _)| &*record.id == NO_ID);
        if unnamed || (!outcomes.is_empty() && outcomes.iter().all(outage)) {
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
        to_raw_value(&response).map_err(|_| InvocationError::Malformed {
            source_name: NAME,
            reason: "the answer cannot be serialized".to_owned(),
        })
    }
}

fn read(at: usize, raw: &RawValue) -> Result<Record<'_>, InvocationError> {
    let message: Message<'_> =
        serde_json::from_str(raw.get()).map_err(|_| InvocationError::Malformed {
            source_name: NAME,
            reason: format!("record {} of the batch is not an SQS message", at + 1),
        })?;
    let queue = message.queue.map_or(Cow::Borrowed(""), |queue| queue.0);
    // Fair queues have groups too, but keep no order.
    let ordered = queue.ends_with(".fifo");
    let group = message.attributes.and_then(|attributes| attributes.group);
    let id = message.id.map_or(Cow::Borrowed(NO_ID), |id| id.0);
    let payload = match (&*id, message.body) {
        (NO_ID, _) => Err(Rejection::NoPayload("messageId")),
        (_, None) => Err(Rejection::NoPayload("body")),
        (_, Some(body)) => Ok(body.0),
    };
    Ok(Record {
        id: RecordId::new(NAME, &*id).from_arn(Some(Arc::from(&*queue))),
        raw,
        payload,
        group: group.filter(|_| ordered).map(|group| Arc::from(&*group.0)),
        identity: vec![Cow::Borrowed(NAME), queue, id],
    })
}
