//! One filter: a queue, a topic, a stream, ... from which records are taken.
//!
//! Each filter has a kind, and is compared only with the event's values of that kind. A topic's
//! name is never compared with a cluster's, nor a queue's with a stream's.

/// The kind of resource or value that a filter names.
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
    pub(super) kind: Kind,
    pub(super) name: String,
}

/// Where an event is from: a kind of resource, and its name or ARN if the event contains one.
pub(super) type Found<'a> = (Kind, Option<&'a str>);

impl Kind {
    /// The setter for filters of this kind.
    pub(super) const fn setting(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Topic => "topic",
            Self::Stream => "stream",
            Self::Table => "table",
            Self::Bucket => "bucket",
            Self::Broker => "broker",
            Self::Cluster => "cluster",
            Self::Schedule => "schedule",
            Self::EventSource => "event_source",
            Self::DetailType => "detail_type",
        }
    }

    /// The services whose ARNs name such a resource; empty if it has no ARN.
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
            // `broker:shop:b-1`, `cluster:shop`, `vpc-connection/444455556666/shop/3f2a-4`
            Self::Stream | Self::Table | Self::Broker | Self::Cluster => {
                match resource.strip_prefix(CONNECTION) {
                    Some(cluster) => cluster.split('/').nth(1),
                    None => resource.split(['/', ':']).nth(1),
                }
            }
            // `schedule/group/nightly`
            Self::Schedule => resource.rsplit('/').next(),
            Self::EventSource | Self::DetailType => None,
        }
    }

    /// The suffix that AWS appends to a resource's ARN in records: a table's records contain the ARN of the
    /// table's stream, and a stream's may contain that of a consumer.
    const fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Table => Some("/stream/"),
            Self::Stream => Some("/consumer/"),
            _ => None,
        }
    }
}

impl Filter {
    /// Whether the filter accepts what was found in the event.
    pub(super) fn takes(&self, (kind, found): Found<'_>) -> bool {
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
            || (self.kind == Kind::Broker && connects_to(&self.name, found))
            || rest.zip(self.kind.suffix()).is_some_and(|(rest, suffix)| rest.starts_with(suffix))
    }

    /// Whether it accepts everything that the other accepts.
    pub(super) fn covers(&self, other: &Self) -> bool {
        // The name of a bucket may be in the ARN of another partition.
        let is_parent = self.kind != Kind::Bucket && is_arn(&self.name);
        self == other
            || (self.kind == other.kind
                && (self.is_name_in(&other.name) || is_parent && self.is_parent_of(&other.name)))
    }

    /// Why no record of this source can ever match it, if so.
    pub(super) fn mistake(&self, source: &str) -> Option<&'static str> {
        let Self { kind, name } = self;
        if name.trim().is_empty() {
            return Some("it is empty");
        }
        if kind.services().is_empty() {
            return (name.trim() != name).then_some("it begins or ends with a space");
        }
        if is_arn(name) {
            let service = name.split(':').nth(2).unwrap_or_default();
            let whole = kind.name_in(name).is_some_and(is_allowed) && !name.contains(['*', ' ']);
            return if *kind == Kind::Topic && source == "kafka" {
                Some("it is an ARN, but Kafka records contain the topic's name")
            } else if !kind.services().contains(&service) {
                Some("it is the ARN of another service")
            } else {
                (!whole).then_some("it is not a whole ARN")
            };
        }
        if name.contains("://") {
            return Some("it is a URL");
        }
        (!is_allowed(name)).then_some("it has characters that such a name cannot have")
    }

    /// Whether a record can pass this filter and another one: a topic is in a cluster, and an event has a source and
    /// a type.
    pub(super) fn may_meet(&self, other: &Self) -> bool {
        use Kind::{Broker, DetailType, EventSource, Topic};
        self == other
            || matches!(
                (self.kind, other.kind),
                (Topic, Broker)
                    | (Broker, Topic)
                    | (EventSource, DetailType)
                    | (DetailType, EventSource)
            )
    }
}

/// The resource of a connection from another VPC to a cluster of MSK, before the cluster's account and name:
/// <https://docs.aws.amazon.com/lambda/latest/dg/msk-cross-account.html>. Checked with AWS's samples, not with a cluster.
const CONNECTION: &str = "vpc-connection/";

/// Whether an ARN is that of a connection to this cluster, which has the cluster's region, account and name.
fn connects_to(cluster: &str, connection: &str) -> bool {
    let parts = |arn: &str| -> Vec<String> { arn.splitn(6, ':').map(str::to_owned).collect() };
    let (cluster, connection) = (parts(cluster), parts(connection));
    let ([_, partition, service, region, account, resource], [_, its, same, here, _, to]) =
        (&*cluster, &*connection)
    else {
        return false;
    };
    let name = resource.strip_prefix("cluster/").and_then(|name| name.split('/').next());
    let to: Vec<&str> = to.strip_prefix(CONNECTION).unwrap_or_default().split('/').collect();
    (partition, service, region) == (its, same, here)
        && name.is_some_and(|name| to.starts_with(&[account.as_str(), name]))
}

/// Whether a name has only characters that AWS and Kafka allow in the names of these resources.
fn is_allowed(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
    !name.is_empty() && name.chars().all(allowed)
}

/// Whether a text is an ARN, or was meant to be one.
fn is_arn(text: &str) -> bool {
    text.starts_with("arn:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(kind: Kind, name: &str) -> Filter {
        Filter { kind, name: name.to_owned() }
    }

    /// Each source's events have their own test, in `behaviour/filters.rs`.
    #[test]
    fn a_filter_takes_a_resource_by_name_and_by_arn_and_no_other() {
        use Kind::{Broker, Bucket, Cluster, Queue, Schedule, Stream, Table, Topic};
        let kinds = [
            (Cluster, "arn:aws:rds:eu-west-1:1:cluster:orders"),
            (Queue, "arn:aws:sqs:eu-west-1:1:orders"),
            (Topic, "arn:aws-cn:sns:cn-north-1:1:orders"),
            (Bucket, "arn:aws:s3:::orders"),
            (Stream, "arn:aws:kinesis:eu-west-1:1:stream/orders"),
            (Table, "arn:aws:dynamodb:eu-west-1:1:table/orders/stream/2026-01-01T00:00:00.000"),
            (Broker, "arn:aws:kafka:eu-west-1:1:cluster/orders/3f2a-4"),
            (Broker, "arn:aws:kafka:eu-west-1:2:vpc-connection/1/orders/51ab98b4-0a61-7"),
            (Broker, "arn:aws:mq:eu-west-1:1:broker:orders:b-1"),
            (Schedule, "arn:aws:scheduler:eu-west-1:1:schedule/default/orders"),
        ];
        for (kind, arn) in kinds {
            for (mine, _) in kinds {
                assert_eq!(filter(mine, "orders").takes((kind, Some(arn))), mine == kind, "{arn}");
            }
            assert!(filter(kind, arn).takes((kind, Some(arn))), "{arn}");
            assert_eq!(filter(kind, arn).mistake("sqs"), None, "{arn}");
            assert!(!filter(kind, "orders").takes((kind, None)));
            let elsewhere = arn.replace("-1:", "-2:");
            for other in ["order", "my-orders", "b-1", "1", "default", "stream", &*elsewhere] {
                let taken = filter(kind, other).takes((kind, Some(arn)));
                assert_eq!(taken, other == arn, "{other} {arn}");
            }
        }
        // A cluster's filter takes the connections to it, and to no other.
        let (cluster, connection) = (kinds[6].1, kinds[7].1);
        let takes = |name: &str| filter(Broker, name).takes((Broker, Some(connection)));
        assert!(takes(cluster));
        assert!(
            !takes(&cluster.replace("orders", "other")) && !takes(&cluster.replace(":1:", ":3:"))
        );
    }

    #[test]
    fn the_arn_of_a_table_or_stream_matches_what_aws_appends_to_it() {
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
    fn the_name_of_a_fifo_queue_includes_its_suffix() {
        let arn = "arn:aws:sqs:eu-west-1:111122223333:orders.fifo";
        assert!(filter(Kind::Queue, "orders.fifo").takes((Kind::Queue, Some(arn))));
        assert!(!filter(Kind::Queue, "orders").takes((Kind::Queue, Some(arn))));
    }

    #[test]
    fn names_that_no_record_can_match_are_mistakes() {
        for (kind, name, problem) in [
            (Kind::Queue, "", "it is empty"),
            (Kind::Queue, " ", "it is empty"),
            (Kind::Queue, "https://sqs.eu-west-1.amazonaws.com/111122223333/orders", "it is a URL"),
            (Kind::Bucket, "s3://uploads", "it is a URL"),
            (Kind::Queue, "orders ", "it has characters that such a name cannot have"),
            (Kind::Queue, "orders*", "it has characters that such a name cannot have"),
            (Kind::Stream, "stream/orders", "it has characters that such a name cannot have"),
            (Kind::Queue, "arn:aws:sns:eu-west-1:1:orders", "it is the ARN of another service"),
            (Kind::Queue, "arn:aws:sqs", "it is not a whole ARN"),
            (Kind::Queue, "arn:aws:sqs:eu-west-1:1:", "it is not a whole ARN"),
            (Kind::Queue, "arn:aws:sqs:*:*:orders", "it is not a whole ARN"),
            (Kind::Table, "arn:aws:dynamodb:eu-west-1:1:table", "it is not a whole ARN"),
            (Kind::EventSource, "", "it is empty"),
            (Kind::DetailType, "Placed ", "it begins or ends with a space"),
        ] {
            assert_eq!(filter(kind, name).mistake("sqs"), Some(problem), "{name}");
        }
        for (kind, name) in [
            (Kind::EventSource, "https://shop.example/orders"),
            (Kind::DetailType, "EC2 Instance State-change Notification"),
            (Kind::Topic, "orders.placed_v1"),
        ] {
            assert_eq!(filter(kind, name).mistake("sqs"), None, "{name}");
        }
    }
}
