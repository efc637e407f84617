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

use super::{Envelope, Member, Record, Source, all_or_error, delivers, object, text};
use crate::{error::InvocationError, operation::Operation};

pub(crate) struct Sns;

const NAME: &str = "sns";

#[derive(Default, Deserialize)]
struct Delivery<'e> {
    #[serde(rename = "Sns", borrow, default)]
    notification: Member<'e>,
}

#[derive(Default, Deserialize)]
struct Notification<'e> {
    #[serde(rename = "MessageId", borrow, default)]
    id: Member<'e>,
    #[serde(rename = "TopicArn", borrow, default)]
    topic: Member<'e>,
    #[serde(rename = "Message", borrow, default)]
    message: Member<'e>,
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

    fn records<'e>(&self, event: &Envelope<'e>) -> Vec<Record<'e>> {
        event.records().unwrap_or_default().iter().copied().map(read).collect()
    }

    fn respond(
        &self,
        records: &[RecordId],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError> {
        all_or_error(NAME, records, outcomes)
    }
}

fn read(raw: &RawValue) -> Record<'_> {
    let delivery: Delivery<'_> = object(Some(raw));
    let notification: Notification<'_> = object(delivery.notification);
    let topic = text(notification.topic).unwrap_or_default();
    // An empty id would be the same for all.
    let id = text(notification.id).filter(|id| !id.is_empty());
    let payload = match (&id, text(notification.message)) {
        (None, _) => Err(Rejection::NoPayload("Sns.MessageId")),
        (_, None) => Err(Rejection::NoPayload("Sns.Message")),
        (_, Some(message)) => Ok(message),
    };
    let id = id.unwrap_or_default();
    Record {
        id: RecordId::new(NAME, &*id).from_arn(Some(Arc::from(&*topic))),
        raw,
        payload,
        group: None,
        identity: vec![Cow::Borrowed(NAME), topic, id],
    }
}
