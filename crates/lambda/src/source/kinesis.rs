//! Kinesis: the records of one shard, in order. The response contains the checkpoint from which
//! they have to be delivered again.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-kinesis.html>

use std::{borrow::Cow, io::Read as _, sync::Arc};

use flate2::read::GzDecoder;
use serde_json::value::RawValue;

use super::{
    contract::{About, EventSource, partial},
    event::Event,
    filter::Kind,
    record::{
        Item, Record, base64_bytes, base64_text, id, identity_of, json_object, object, record_id,
        text,
    },
    settings::{KeepOrder, Settings, source},
    sink::RecordEnd,
};
use crate::{decode::Format, error::InvocationError};

source! {
    /// Records of a Kinesis stream, in the order of their partition keys; the payload is their data as text.
    ///
    /// Needs `FunctionResponseTypes: [ReportBatchItemFailures]`.
    Kinesis => KinesisEvents; payload messages batches partial ordered
}

/// # Which records
impl Kinesis {
    /// Takes only records of this stream, by its name or ARN. Default: all streams.
    pub fn stream(mut self, stream: impl Into<String>) -> Self {
        self.0.only_from(Kind::Stream, stream.into());
        self
    }
}

const NAME: &str = "kinesis";

json_object!(struct Delivered {
    /// Missing in pipes, where its members are one level higher.
    kinesis, id: "eventID", stream: "eventSourceARN",
});

json_object!(struct Data { key: "partitionKey", sequence: "sequenceNumber", data });

impl EventSource for KinesisEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "stream ARN, eventID (shard and sequence number)",
            catches: "everything that Lambda delivers again: records behind a checkpoint, halves of \
                      a batch, whole batches",
            misses: "a producer that puts a record again after a lost answer, which gives it a new \
                     sequence number",
            volatile: &[],
            is_cause_of_invocation: false,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        event.delivers("aws:kinesis", Kind::Stream, settings)
    }

    fn records<'e>(&self, event: &Event<'e>, settings: &Settings) -> Vec<Record<'e>> {
        let records = event.records().iter().filter(|raw| !is_control_message(raw));
        records.map(|raw| read(raw, settings)).collect()
    }

    /// A tumbling window's state is returned unchanged, because handlers keep their results
    /// elsewhere.
    fn respond(
        &self,
        event: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[RecordEnd],
    ) -> Result<Box<RawValue>, InvocationError> {
        partial(NAME, event.window_state(), records, outcomes)
    }
}

pub(super) fn read<'e>(raw: &'e RawValue, settings: &Settings) -> Record<'e> {
    let delivered: Delivered<'_> = object(Some(raw));
    let data: Data<'_> = object(delivered.kinesis.or(Some(raw)));
    let stream = text(delivered.stream).map(without_consumer);
    let sequence = id(data.sequence);
    let group = match settings.order {
        Some(KeepOrder::Shard) => Some(Cow::Borrowed("")),
        Some(KeepOrder::None) => None,
        _ => Some(text(data.key).unwrap_or_default()),
    };
    let record = record_id(NAME, sequence.as_deref(), stream.as_deref().unwrap_or_default());
    Record {
        identity: identity_of(NAME, [("eventSourceARN", stream), ("eventID", text(delivered.id))]),
        item: sequence.map(|sequence| Item::Id(sequence.into_owned())),
        group: group.as_deref().map(Arc::from),
        format: Format::Text,
        body: text(data.data),
        ..Record::new(record, raw, base64_text(text(data.data), "kinesis.data"))
    }
}

/// Whether a record is a message by which CloudWatch Logs tests that it reaches the stream: it has no lines and no log group,
/// so it has no key, and would block its shard.
pub(super) fn is_control_message(raw: &RawValue) -> bool {
    /// Far more than such a message has, in base64 and decompressed.
    const LONGEST: usize = 2048;

    json_object!(struct OfLogs { kind: "messageType" });

    // Nearly all records are told apart by their beginning: that of data compressed by gzip.
    if !raw.get().contains("\"H4sI") {
        return false;
    }
    let delivered: Delivered<'_> = object(Some(raw));
    let data = text(object::<Data<'_>>(delivered.kinesis.or(Some(raw))).data);
    let data = data.filter(|data| data.len() <= LONGEST);
    let Some(bytes) = data.and_then(|data| base64_bytes(&data)) else { return false };
    let mut json = String::new();
    let mut decoder = GzDecoder::new(&*bytes).take(LONGEST as u64);
    let Ok(_) = decoder.read_to_string(&mut json) else { return false };
    let logs = serde_json::from_str(&json).ok().map(|raw| object::<OfLogs<'_>>(Some(raw)));
    logs.is_some_and(|logs| text(logs.kind).is_some_and(|kind| kind == "CONTROL_MESSAGE"))
}

/// The ARN of the stream. With enhanced fan-out, records name the consumer: `<stream>/consumer/..`.
fn without_consumer(arn: Cow<'_, str>) -> Cow<'_, str> {
    match arn.rsplit_once("/consumer/").map(|(stream, _)| stream.len()) {
        None => arn,
        Some(length) => match arn {
            Cow::Borrowed(arn) => Cow::Borrowed(arn.get(..length).unwrap_or(arn)),
            Cow::Owned(mut arn) => {
                arn.truncate(length);
                Cow::Owned(arn)
            }
        },
    }
}
