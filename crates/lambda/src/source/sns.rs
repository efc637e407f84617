//! SNS: an asynchronous invocation, tried again as a whole if it returns an error.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html>

use std::{borrow::Cow, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    call::RecordId,
    outcome::{Outcome, Rejection},
    policy::Conflict,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Envelope, Record, Source, Text, all_or_error, delivers};
use crate::{error::InvocationError, operation::Operation};

pub(crate) struct Sns;

const NAME: &str = "sns";

#[derive(Deserialize)]
struct Delivery<'e> {
    #[serde(rename = "Sns", borrow)]
    notification: Notification<'e>,
}

#[derive(Deserialize)]
struct Notification<'e> {
    #[serde(rename = "MessageId", borrow, default)]
    id: Option<Text<'e>>,
    #[serde(rename = "TopicArn", borrow, default)]
    topic: Option<Text<'e>>,
    #[serde(rename = "Message", borrow, default)]
    message: Option<Text<'e>>,
}

impl Source for Sns {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Its two retries may both fall inside the lease of a call that died.
    fn conflict(&self) -> Conflict {
        Conflict::Wait { up_to: Duration::MAX }
    }

    fn recognises(&self, event: &Envelope<'_>, operation: &Operation) -> bool {
        delivers("aws:sns", event, operation)
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
        all_or_error(NAME, records, outcomes)
    }
}

fn read(at: usize, raw: &RawValue) -> Result<Record<'_>, InvocationError> {
    let delivery: Delivery<'_> =
        serde_json::from_str(raw.get()).map_err(|_| InvocationError::Malformed {
            source_name: NAME,
            reason: format!("record {} has no `Sns` object", at + 1),
        })?;
    let Notification { id, topic, message } = delivery.notification;
    let topic = topic.map_or(Cow::Borrowed(""), |topic| topic.0);
    let payload = match (&id, message) {
        (None, _) => Err(Rejection::NoPayload("Sns.MessageId")),
        (_, None) => Err(Rejection::NoPayload("Sns.Message")),
        (_, Some(message)) => Ok(message.0),
    };
    let id = id.map_or(Cow::Borrowed(""), |id| id.0);
    Ok(Record {
        id: RecordId::new(NAME, &*id).from_arn(Some(Arc::from(&*topic))),
        raw,
        payload,
        group: None,
        identity: vec![Cow::Borrowed(NAME), topic, id],
    })
}
