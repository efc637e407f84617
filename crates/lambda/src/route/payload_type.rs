//! Refuses handlers whose payload is of a type that no record of their source can have.

use super::Draft;
use crate::error::ConfigError;

const EVENTS_CRATE: &str = "aws_lambda_events::";

/// The types of that crate for a source's whole events, and for its records with all that is around their payload.
const TYPES: [(&str, &[&str], &[&str]); 10] = [
    ("sqs", &["SqsEvent", "SqsEventObj"], &["SqsMessage", "SqsMessageObj"]),
    ("sns", &["SnsEvent", "SnsEventObj"], &["SnsRecord", "SnsRecordObj"]),
    ("s3", &["S3Event"], &[]),
    ("kinesis", &["KinesisEvent", "KinesisTimeWindowEvent"], &["KinesisEventRecord"]),
    ("dynamodb", &["Event", "TimeWindowEvent"], &["EventRecord"]),
    ("documentdb", &["DocumentDbEvent"], &["DocumentDbInnerEvent"]),
    ("kafka", &["KafkaEvent"], &["KafkaRecord"]),
    ("activemq", &["ActiveMqEvent"], &["ActiveMqMessage"]),
    ("rabbitmq", &["RabbitMqEvent"], &["RabbitMqMessage"]),
    ("eventbridge", &[], &["EventBridgeEvent", "CloudWatchEvent"]),
];

impl Draft {
    /// Refuses a handler that could decode no record, or would decode every record to a type whose members are all
    /// missing.
    pub(super) fn takes_records(&self) -> Result<(), ConfigError> {
        let (payload, name) = (self.payload, self.operation.name());
        let type_name = payload.split('<').next().unwrap_or_default();
        let Some((_, type_name)) = type_name.rsplit_once("::") else { return Ok(()) };
        let (source, settings) = (&self.source.events, &self.source.settings);
        let is_mine = |mine: &str| mine == source.name() || mine == source.origin();
        let types = TYPES.iter().find(|(mine, ..)| is_mine(mine));
        let Some((_, events, records)) = types.filter(|_| payload.starts_with(EVENTS_CRATE)) else {
            return Ok(());
        };
        if events.contains(&type_name) {
            return Err(ConfigError::source(format!(
                "the handler of operation `{name}` takes a whole event, `{payload}`, and would refuse everything, because \
                 a handler gets one record: take the payload of one, such as `Order`, or call `Idempotency::run` in a \
                 function of whole events"
            )));
        }
        if records.contains(&type_name) && !settings.whole_record {
            return Err(ConfigError::source(format!(
                "the handler of operation `{name}` takes a whole record, `{payload}`, and would get its payload: add \
                 `.whole_record()` to the source, or take the payload, such as `Order`"
            )));
        }
        Ok(())
    }
}
