//! A record as OpenTelemetry's [conventions for messaging] describe it.
//!
//! [conventions for messaging]: https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/

use lambda_idempotency_engine::{call::RecordId, delivered::Messaging};

/// Describes a record; `None` if its source is not one of messages.
///
/// The conventions name the systems `aws_sqs`, `aws.sns`, `kafka`, `rabbitmq` and `activemq`; the others are named
/// like SNS.
pub(crate) fn messaging(record: &RecordId) -> Option<Messaging<'_>> {
    let arn = record.arn.as_deref().unwrap_or_default();
    let resource = arn.rsplit(':').next().filter(|name| !name.is_empty());
    // An id that an application has chosen has another label.
    let id = Some(&*record.id).filter(|id| !id.is_empty() && *id == record.label());
    let (system, destination, message_id) = match record.source {
        "sqs" => ("aws_sqs", resource, id),
        "sns" => ("aws.sns", resource, id),
        // The event does not name its bus.
        "eventbridge" => ("aws.eventbridge", None, id),
        "kinesis" => ("aws.kinesis", resource.and_then(|name| name.strip_prefix("stream/")), id),
        // The id is `topic-partition@offset`.
        "kafka" => ("kafka", topic(&record.id), None),
        // The ARN is that of the broker.
        "rabbitmq" => ("rabbitmq", None, id),
        "activemq" => ("activemq", None, id),
        _ => return None,
    };
    Some(Messaging { system, destination, message_id })
}

fn topic(id: &str) -> Option<&str> {
    let (partition, _) = id.rsplit_once('@')?;
    partition.rsplit_once('-').map(|(topic, _)| topic)
}
