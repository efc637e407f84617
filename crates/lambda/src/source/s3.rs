//! S3: an asynchronous invocation with notifications of objects. Lambda retries it as a whole if it
//! returns an error.
//!
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_engine::call::RecordId;
use serde_json::value::RawValue;

use super::{
    contract::{About, EventSource},
    event::Event,
    filter::Kind,
    record::{Record, id, json_object, object, text},
    settings::{Settings, source},
};
use crate::rejection::Rejection;

source! {
    /// S3 notifications; the payload is the notification as it is delivered. A test event is acknowledged.
    S3 => S3Events; batches
}

/// # Which records
impl S3 {
    /// Takes only notifications of this bucket, by its name or ARN. Default: all buckets.
    pub fn bucket(mut self, bucket: impl Into<String>) -> Self {
        self.0.only_from(Kind::Bucket, bucket.into());
        self
    }
}

const NAME: &str = "s3";

/// The event that a bucket sends when its notifications are configured.
const TEST: &str = "s3:TestEvent";

json_object!(struct Notification {
    name: "eventName", time: "eventTime", response: "responseElements", s3,
    replication: "replicationEventData",
});

json_object!(struct Replication { destination: "destinationBucket" });
json_object!(struct Response { request: "x-amz-request-id" });
json_object!(struct Entity { bucket, object });
json_object!(struct Bucket { arn });
json_object!(struct Object { key, version: "versionId", tag: "eTag", sequencer });

impl EventSource for S3Events {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "bucket ARN, object key, versionId, eTag, eventName, and the sequencer of \
                    `ObjectCreated:*` and `ObjectRemoved:*` or the eventTime and request id of others",
            catches: "notifications that S3 sends twice, and retries by Lambda",
            misses: "an object that is uploaded again, even with the same content",
            volatile: &[],
            is_cause_of_invocation: true,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        event.delivers("aws:s3", Kind::Bucket, settings)
            || (is_test(event)
                && settings.takes(&[(Kind::Bucket, text(event.outside.bucket).as_deref())]))
    }

    /// A test event has no records.
    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        event.records().iter().copied().map(read).collect()
    }
}

fn is_test(event: &Event<'_>) -> bool {
    text(event.outside.event).is_some_and(|event| event == TEST)
}

/// The notifications in the form that queues and topics get, if it is one; empty for a test event.
pub(super) fn in_envelope(raw: &RawValue) -> Option<Vec<Record<'_>>> {
    let event = Event::read(raw, "");
    match event.records {
        Some(records) => Some(records.into_iter().map(read).collect()),
        None => is_test(&event).then(Vec::new),
    }
}

fn read(raw: &RawValue) -> Record<'_> {
    let notification: Notification<'_> = object(Some(raw));
    let entity: Entity<'_> = object(notification.s3);
    let found: Object<'_> = object(entity.object);
    let bucket = id(object::<Bucket<'_>>(entity.bucket).arn);
    let [key, name] = [id(found.key), id(notification.name)];
    let payload = match (&bucket, &key) {
        (None, _) => Err(Rejection::NoMember("s3.bucket.arn")),
        (_, None) => Err(Rejection::NoMember("s3.object.key")),
        _ => Ok(Cow::Borrowed(raw.get())),
    };
    // The sequencer is that of the write. Later events of the object, such as two failures to replicate it, repeat it.
    let is_write = name.as_deref().is_some_and(|name| {
        ["ObjectCreated:", "ObjectRemoved:"].iter().any(|kind| name.starts_with(kind))
    });
    let moment = match (id(found.sequencer), id(notification.time)) {
        (Some(sequencer), _) if is_write => Some(vec![sequencer]),
        (_, Some(time)) => {
            let request = id(object::<Response<'_>>(notification.response).request);
            let to = id(object::<Replication<'_>>(notification.replication).destination);
            request.map(|request| [time, request].into_iter().chain(to).collect())
        }
        (_, None) => None,
    };
    let shown = found.sequencer.or(notification.time);
    let record = RecordId::new(NAME, text(shown).unwrap_or_default());
    let record = record.with_arn(bucket.as_deref().map(Arc::from));
    let identity = match (bucket, key, name, moment) {
        (Some(bucket), Some(key), Some(name), Some(moment)) => {
            let [version, tag] =
                [found.version, found.tag].map(|part| text(part).unwrap_or_default());
            let parts = [Cow::Borrowed(NAME), bucket, key, version, tag, name];
            Ok(parts.into_iter().chain(moment).collect())
        }
        _ => Err(Rejection::PartOfIdentity(&[
            "s3.bucket.arn",
            "s3.object.key",
            "eventName",
            "eventTime",
            "responseElements.x-amz-request-id",
        ])),
    };
    Record { identity, ..Record::new(record, raw, payload) }
}
