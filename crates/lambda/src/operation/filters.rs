//! Filters: from where an operation takes its records (`from_queue`, `from_topic`, ...).
//!
//! Each filter has a kind, and is compared only with what an event says of that kind. A topic's name
//! is never compared with a cluster's, nor a queue's with a stream's.

use std::sync::Arc;

use super::Operation;
use crate::error::ConfigError;

/// What a filter names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A queue of SQS.
    Queue,
    /// A topic of SNS or Kafka.
    Topic,
    /// A stream of Kinesis.
    Stream,
    /// A table of DynamoDB, by its stream.
    Table,
    /// A bucket of S3.
    Bucket,
    /// A broker of Amazon MQ or a cluster of Amazon MSK.
    Broker,
    /// A cluster of DocumentDB.
    Cluster,
    /// A schedule of EventBridge Scheduler.
    Schedule,
    /// The `source` of an EventBridge event.
    EventSource,
    /// The `detail-type` of an EventBridge event.
    DetailType,
}

/// A filter: a kind and a name, or an ARN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    kind: Kind,
    name: String,
}

/// What an event says of where it is from: a kind, and the name or ARN, if it has one.
type Found<'a> = (Kind, Option<&'a str>);

impl Kind {
    /// The setting that names it.
    const fn setting(self) -> &'static str {
        match self {
            Self::Queue => "from_queue",
            Self::Topic => "from_topic",
            Self::Stream => "from_stream",
            Self::Table => "from_table",
            Self::Bucket => "from_bucket",
            Self::Broker => "from_broker",
            Self::Cluster => "from_cluster",
            Self::Schedule => "from_schedule",
            Self::EventSource => "from_source",
            Self::DetailType => "detail_type",
        }
    }

    /// The services in whose ARNs it can be; none if it has no ARN.
    const fn services(self) -> &'static [&'static str] {
        match self {
            Self::Queue => &["sqs"],
            Self::Topic => &["sns"],
            Self::Stream => &["kinesis"],
            Self::Table => &["dynamodb"],
            Self::Bucket => &["s3"],
            Self::Broker => &["mq", "kafka"],
            Self::Cluster => &["rds"],
            Self::Schedule => &["scheduler"],
            Self::EventSource | Self::DetailType => &[],
        }
    }

    /// The resource's name in its ARN.
    fn name_in(self, arn: &str) -> Option<&str> {
        let resource = arn.splitn(6, ':').nth(5)?;
        match self {
            Self::Queue | Self::Topic | Self::Bucket => Some(resource),
            // `stream/orders`, `table/orders/stream/2026-..`, `cluster/shop/3f2a-4`,
            // `broker:shop:b-1`, `cluster:shop`
            Self::Stream | Self::Table | Self::Broker | Self::Cluster => {
                resource.split(['/', ':']).nth(1)
            }
            // `schedule/group/nightly`
            Self::Schedule => resource.rsplit('/').next(),
            Self::EventSource | Self::DetailType => None,
        }
    }

    /// What AWS appends to the ARN of the resource that its users know: a table's records name the
    /// table's stream, a stream's may name a consumer.
    const fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Table => Some("/stream/"),
            Self::Stream => Some("/consumer/"),
            _ => None,
        }
    }
}

impl Filter {
    /// Whether it takes what the event says.
    fn takes(&self, (kind, found): Found<'_>) -> bool {
        let Some(found) = found.filter(|_| kind == self.kind) else { return false };
        found == self.name
            || if is_arn(&self.name) { self.is_parent_of(found) } else { self.is_name_in(found) }
    }

    fn is_name_in(&self, found: &str) -> bool {
        is_arn(found) && self.kind.name_in(found) == Some(&*self.name)
    }

    fn is_parent_of(&self, found: &str) -> bool {
        let rest = found.strip_prefix(&*self.name);
        // A test event of S3 names its bucket without an ARN.
        let is_bucket = self.kind == Kind::Bucket && self.kind.name_in(&self.name) == Some(found);
        is_bucket
            || rest.zip(self.kind.suffix()).is_some_and(|(rest, suffix)| rest.starts_with(suffix))
    }

    /// Whether it takes all that the other takes.
    fn covers(&self, other: &Self) -> bool {
        // The name of a bucket may be in the ARN of another partition.
        let is_parent = self.kind != Kind::Bucket && is_arn(&self.name);
        self == other
            || (self.kind == other.kind
                && (self.is_name_in(&other.name) || is_parent && self.is_parent_of(&other.name)))
    }

    /// Why nothing can ever match it.
    fn mistake(&self) -> Option<&'static str> {
        let Self { kind, name } = self;
        if name.trim().is_empty() {
            return Some("is empty");
        }
        if kind.services().is_empty() {
            return (name.trim() != name).then_some("begins or ends with a space");
        }
        if is_arn(name) {
            let service = name.split(':').nth(2).unwrap_or_default();
            let whole = kind.name_in(name).is_some_and(is_allowed) && !name.contains(['*', ' ']);
            return if !kind.services().contains(&service) {
                Some("is the ARN of another service")
            } else {
                (!whole).then_some("is not a whole ARN")
            };
        }
        if name.contains("://") {
            return Some("is a URL");
        }
        (!is_allowed(name)).then_some("has characters that no such name has")
    }
}

/// Whether a name has only characters that AWS and Kafka allow in the names of these resources.
fn is_allowed(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    !name.is_empty() && name.chars().all(allowed)
}

/// Whether a text is an ARN, or was meant for one.
fn is_arn(text: &str) -> bool {
    text.starts_with("arn:")
}

impl Operation {
    /// Takes only records that this filter takes, too.
    pub(crate) fn only_from(mut self, kind: Kind, name: String) -> Self {
        self.filters.push(Filter { kind, name });
        self.changed()
    }

    /// Whether the operation takes records of which an event says this. One without filters takes
    /// all records of its source.
    pub(crate) fn takes(&self, found: &[Found<'_>]) -> bool {
        self.filters.iter().all(|filter| found.iter().any(|found| filter.takes(*found)))
    }

    /// Whether there is anything to compare with what an event says.
    pub(crate) const fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether this filter is set.
    pub(crate) fn is_from(&self, setting: &str) -> bool {
        self.filters.iter().any(|filter| filter.kind.setting() == setting)
    }

    /// Whether it takes every record that the other takes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.filters.iter().all(|one| other.filters.iter().any(|other| one.covers(other)))
    }

    /// The names in the filters, for errors.
    pub(crate) fn filter_names(&self) -> impl Iterator<Item = &str> {
        self.filters.iter().map(|filter| &*filter.name)
    }

    /// Refuses a filter that no record of this source can pass.
    pub(crate) fn check_filters_of(&self, source: &str) -> Result<(), ConfigError> {
        let topic = self.filters.iter().find(|filter| filter.kind == Kind::Topic);
        match topic.filter(|topic| source == "kafka" && is_arn(&topic.name)) {
            Some(topic) => Err(self.mistaken(topic, "is an ARN, where Kafka has names")),
            None => Ok(()),
        }
    }

    fn mistaken(&self, filter: &Filter, problem: &'static str) -> ConfigError {
        let (setting, name) = (filter.kind.setting(), filter.name.clone());
        ConfigError::FilterName { operation: Arc::clone(&self.name), setting, name, problem }
    }

    /// Refuses filters that no record can pass.
    pub(super) fn check_filters(&self) -> Result<(), ConfigError> {
        for (nth, filter) in self.filters.iter().enumerate() {
            if let Some(problem) = filter.mistake() {
                return Err(self.mistaken(filter, problem));
            }
            let mut before = self.filters.iter().take(nth);
            if let Some(before) = before.find(|before| !may_meet(before, filter)) {
                let (before, setting) = (before.kind.setting(), filter.kind.setting());
                let operation = Arc::clone(&self.name);
                return Err(ConfigError::Filters { operation, before, setting });
            }
        }
        Ok(())
    }
}

/// Whether a record can pass both: a topic is in a cluster, and an event has a source and a type.
fn may_meet(one: &Filter, two: &Filter) -> bool {
    use Kind::{Broker, DetailType, EventSource, Topic};
    one == two
        || matches!(
            (one.kind, two.kind),
            (Topic, Broker)
                | (Broker, Topic)
                | (EventSource, DetailType)
                | (DetailType, EventSource)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(kind: Kind, name: &str) -> Filter {
        Filter { kind, name: name.to_owned() }
    }

    #[test]
    fn a_resource_goes_by_its_arn_or_by_its_name() {
        use Kind::{Broker, Bucket, Cluster, Queue, Schedule, Stream, Table, Topic};
        for (kind, arn) in [
            (Cluster, "arn:aws:rds:eu-west-1:111122223333:cluster:orders"),
            (Queue, "arn:aws:sqs:eu-west-1:111122223333:orders"),
            (Topic, "arn:aws-cn:sns:cn-north-1:111122223333:orders"),
            (Bucket, "arn:aws:s3:::orders"),
            (Stream, "arn:aws:kinesis:eu-west-1:1:stream/orders"),
            (Table, "arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026-01-01T00:00:00.000"),
            (Broker, "arn:aws:kafka:eu-west-1:1:cluster/orders/3f2a-4"),
            (Broker, "arn:aws:mq:eu-west-1:1:broker:orders:b-1"),
            (Schedule, "arn:aws:scheduler:eu-west-1:1:schedule/default/orders"),
        ] {
            assert!(filter(kind, "orders").takes((kind, Some(arn))), "{arn}");
            assert!(filter(kind, arn).takes((kind, Some(arn))), "{arn}");
            assert_eq!(filter(kind, arn).mistake(), None, "{arn}");
            assert!(!filter(kind, "orders").takes((kind, None)));
            for other in ["order", "my-orders", "orders-eu", "b-1", "1", "default", "stream"] {
                assert!(!filter(kind, other).takes((kind, Some(arn))), "{other} {arn}");
            }
            let other_region = arn.replace("-1:1", "-2:1");
            assert!(kind == Bucket || !filter(kind, &other_region).takes((kind, Some(arn))));
            for other in [Queue, Topic, Bucket, Stream, Table, Broker, Schedule] {
                assert!(
                    other == kind || !filter(other, "orders").takes((kind, Some(arn))),
                    "{arn}"
                );
            }
        }
    }

    #[test]
    fn the_arn_of_a_table_or_stream_takes_what_aws_appends_to_it() {
        let table = "arn:aws:dynamodb:eu-west-1:1:table/orders";
        let found = |arn: &str| filter(Kind::Table, table).takes((Kind::Table, Some(arn)));
        assert!(found("arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026-01-01T00:00:00.000"));
        assert!(!found(
            "arn:aws:dynamodb:eu-west-1:1:table/orders-eu/stream/2026-01-01T00:00:00.000"
        ));
        let stream = filter(Kind::Stream, "arn:aws:kinesis:eu-west-1:1:stream/orders");
        let consumer = "arn:aws:kinesis:eu-west-1:1:stream/orders/consumer/index:1";
        assert!(stream.takes((Kind::Stream, Some(consumer))));
        let queue = filter(Kind::Queue, "arn:aws:sqs:eu-west-1:1:orders");
        assert!(!queue.takes((Kind::Queue, Some("arn:aws:sqs:eu-west-1:1:orders/consumer/a"))));
    }

    #[test]
    fn a_fifo_queue_has_its_suffix_in_its_name() {
        let arn = "arn:aws:sqs:eu-west-1:111122223333:orders.fifo";
        assert!(filter(Kind::Queue, "orders.fifo").takes((Kind::Queue, Some(arn))));
        assert!(!filter(Kind::Queue, "orders").takes((Kind::Queue, Some(arn))));
    }

    #[test]
    fn names_that_nothing_matches_are_mistakes() {
        for (kind, name, problem) in [
            (Kind::Queue, "", "is empty"),
            (Kind::Queue, " ", "is empty"),
            (Kind::Queue, "https://sqs.eu-west-1.amazonaws.com/111122223333/orders", "is a URL"),
            (Kind::Bucket, "s3://uploads", "is a URL"),
            (Kind::Queue, "orders ", "has characters that no such name has"),
            (Kind::Queue, "orders*", "has characters that no such name has"),
            (Kind::Stream, "stream/orders", "has characters that no such name has"),
            (Kind::Queue, "arn:aws:sns:eu-west-1:1:orders", "is the ARN of another service"),
            (Kind::Queue, "arn:aws:sqs", "is not a whole ARN"),
            (Kind::Queue, "arn:aws:sqs:eu-west-1:1:", "is not a whole ARN"),
            (Kind::Queue, "arn:aws:sqs:*:*:orders", "is not a whole ARN"),
            (Kind::Table, "arn:aws:dynamodb:eu-west-1:1:table", "is not a whole ARN"),
            (Kind::EventSource, "", "is empty"),
            (Kind::DetailType, "Placed ", "begins or ends with a space"),
        ] {
            assert_eq!(filter(kind, name).mistake(), Some(problem), "{name}");
        }
        for (kind, name) in [
            (Kind::EventSource, "https://shop.example/orders"),
            (Kind::DetailType, "EC2 Instance State-change Notification"),
            (Kind::Topic, "orders.placed_v1"),
        ] {
            assert_eq!(filter(kind, name).mistake(), None, "{name}");
        }
    }
}
