//! Records within records: a notification of S3 in one of SNS in a message of SQS.

use std::borrow::Cow;

use lambda_idempotency_keys::Secret;
use serde_json::value::RawValue;

use super::{EventBridge, Identity, Record, S3, Sns, Source, Sqs, event_bridge, s3, sns, sqs};
use crate::{operation::Operation, records::Envelope, rejection::Rejection};

/// Takes the envelopes off that `operation` names, outermost first. Ids that are not shown are hashed
/// with the operation's secret, if it has one, as its keys are.
///
/// The payload is then what is inside, and so is the identity: the inner id survives what gives the
/// outer record a new one. Several records within one go back with it: each keeps the outer one's
/// name, order and place. One without any (S3's test event) leaves nothing to do.
pub(crate) fn unwrap<'e>(records: Vec<Record<'e>>, operation: &Operation) -> Vec<Record<'e>> {
    let mut records = match operation.secret() {
        Some(secret) => hidden_with(secret, records),
        None => records,
    };
    for envelope in &operation.envelopes {
        records = records.into_iter().flat_map(|record| open(record, *envelope)).collect();
    }
    if operation.whole_record {
        for record in &mut records {
            if matches!(&record.payload, Ok(_) | Err(Rejection::NotText(_))) {
                let payload = std::mem::replace(&mut record.payload, Ok(record.raw.clone()));
                record.body = record.body.take().or(payload.ok());
            }
        }
    }
    records
}

/// Hashes ids that are not shown with this secret.
pub(crate) fn hidden_with<'e>(secret: &Secret, mut records: Vec<Record<'e>>) -> Vec<Record<'e>> {
    for record in &mut records {
        record.id = record.id.clone().hashed_with(secret);
    }
    records
}

/// Whose identity the records have: that of the innermost envelope, or the source's own.
pub(crate) fn known_by(source: &dyn Source, operation: &Operation) -> &'static Identity {
    match operation.envelopes.last() {
        None => source.identity(),
        Some(Envelope::Sns) => Sns.identity(),
        Some(Envelope::EventBridge) => EventBridge.identity(),
        Some(Envelope::S3) => S3.identity(),
    }
}

fn open<'e>(mut record: Record<'e>, envelope: Envelope) -> Vec<Record<'e>> {
    let Ok(payload) = &record.payload else { return vec![record] };
    let opened = serde_json::from_str::<&RawValue>(payload).ok().and_then(|raw| {
        let inner = match envelope {
            Envelope::Sns => vec![sns::in_envelope(raw)?],
            Envelope::EventBridge => vec![event_bridge::in_envelope(raw)?],
            Envelope::S3 => s3::in_envelope(raw)?,
        };
        Some(inner.into_iter().map(|inner| inside(&record, envelope, inner)).collect())
    });
    opened.unwrap_or_else(|| {
        let rejection = Rejection::Envelope(match envelope {
            Envelope::Sns => "a notification of SNS",
            Envelope::EventBridge => "an event of EventBridge",
            Envelope::S3 => "a notification of S3",
        });
        let payload = std::mem::replace(&mut record.payload, Err(rejection));
        record.body = record.body.take().or(payload.ok());
        vec![record]
    })
}

/// The outer record with the inner one's payload and identity. Not a clone of the outer one: its
/// payload holds all that are inside, and would be copied for each of them.
fn inside<'e>(outer: &Record<'e>, envelope: Envelope, inner: Record<'_>) -> Record<'e> {
    let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    // Where there is no payload, what is inside stands for it: without the outer record, which differs
    // from delivery to delivery.
    let body = inner.payload.is_err().then(|| owned(inner.raw));
    Record {
        id: outer.id.clone(),
        raw: outer.raw.clone(),
        payload: inner.payload.map(owned),
        body,
        identity: inner.identity.map(|parts| parts.into_iter().map(owned).collect()),
        group: outer.group.clone(),
        receives: outer.receives,
        attributes: match envelope {
            Envelope::Sns if outer.id.source == Sqs.name() => Some(sqs::attribute_of_notification),
            _ => outer.attributes,
        },
        item: outer.item.clone(),
    }
}
