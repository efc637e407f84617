//! The envelopes of all sources. The shapes are those of AWS's documentation; a test compares them with its samples.

mod http;
mod messages;
mod notices;
mod shared;
mod streams;

use serde_json::{Value, json};

use self::http::http;
use self::messages::{active_mq, fifo, notification, rabbit_mq, sns, sqs};
use self::notices::{event_bridge, s3, scheduler};
use self::shared::{arn, json_of};
use self::streams::{documentdb, dynamodb, kafka, kinesis};
use super::{Source, Stamp};

/// An event of this source with a record for each payload.
///
/// # Errors
/// A payload that the source cannot carry: several where it sends one, or not JSON where it sends JSON.
pub(crate) fn event(
    source: Source,
    payloads: &[String],
    stamp: &mut Stamp,
) -> Result<Value, String> {
    let mut records = |record: fn(&str, &mut Stamp) -> Result<Value, String>| {
        payloads.iter().map(|payload| record(payload, stamp)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match source {
        Source::Sqs => json!({ "Records": records(|body, stamp| Ok(sqs(body, stamp)))? }),
        Source::SqsFifo => json!({ "Records": records(|body, stamp| Ok(fifo(body, stamp)))? }),
        Source::Sns => json!({ "Records": records(|message, stamp| Ok(sns(message, stamp)))? }),
        Source::SnsInSqs => json!({ "Records": records(|message, stamp| {
            Ok(sqs(&notification(message, stamp).to_string(), stamp))
        })? }),
        Source::EventBridge => {
            let mut events = records(event_bridge)?;
            match (events.len(), events.pop()) {
                (1, Some(one)) => one,
                (_, last) => events.into_iter().chain(last).collect(),
            }
        }
        Source::Kinesis => json!({ "Records": records(|data, stamp| Ok(kinesis(data, stamp)))? }),
        Source::DynamoDb => json!({ "Records": records(dynamodb)? }),
        Source::S3 => json!({ "Records": records(|key, stamp| Ok(s3(key, stamp)))? }),
        Source::DocumentDb => json!({
            "eventSourceArn": arn("rds", "cluster:shop"),
            "events": records(documentdb)?,
            "eventSource": "aws:docdb",
        }),
        Source::Kafka => json!({
            "eventSource": "aws:kafka",
            "eventSourceArn": arn("kafka", "cluster/shop/3f2a1b00-4c5d-4e6f-8a9b-0c1d2e3f4a5b-4"),
            "bootstrapServers": "b-1.shop.example.kafka.eu-west-1.amazonaws.com:9092",
            "records": { "orders-0": records(|value, stamp| Ok(kafka(value, stamp)))? },
        }),
        Source::ActiveMq => json!({
            "eventSource": "aws:mq",
            "eventSourceArn": arn("mq", "broker:shop:b-9bcfa592-423a-4942-879d-eb284b418fc8"),
            "messages": records(|data, stamp| Ok(active_mq(data, stamp)))?,
        }),
        Source::RabbitMq => json!({
            "eventSource": "aws:rmq",
            "eventSourceArn": arn("mq", "broker:shop:b-9bcfa592-423a-4942-879d-eb284b418fc8"),
            "rmqMessagesByQueue": { "orders::/": records(|data, stamp| Ok(rabbit_mq(data, stamp)))? },
        }),
        Source::Pipe => records(|body, stamp| Ok(sqs(body, stamp)))?.into(),
        Source::Scheduler => scheduler(only(payloads)?, stamp)?,
        Source::Http => http(only(payloads)?, stamp),
        Source::Direct => json_of(only(payloads)?)?,
    })
}

fn only(payloads: &[String]) -> Result<&str, String> {
    match payloads {
        [one] => Ok(one),
        _ => Err("this source sends one payload in an event: give `--body` once".to_owned()),
    }
}
