//! Settings that mean something to some sources only.

use super::Operation;

/// Each with the sources that it is for. A pipe hands over records of queues, streams and brokers.
const FOR: [(&str, &[&str]); 10] = [
    ("from_queue", &["sqs", "pipe"]),
    ("from_topic", &["sns", "kafka"]),
    ("from_stream", &["kinesis", "pipe"]),
    ("from_table", &["dynamodb", "pipe"]),
    ("from_bucket", &["s3"]),
    ("from_broker", &["activemq", "rabbitmq", "kafka", "pipe"]),
    ("from_schedule", &["scheduler"]),
    ("from_source", &["eventbridge"]),
    ("detail_type", &["eventbridge"]),
    ("order", &["kinesis", "dynamodb", "kafka", "pipe"]),
];

impl Operation {
    /// A setting that means nothing to this source: a filter that would let everything through, or
    /// nothing; an order that nobody keeps.
    pub(crate) fn misplaced(&self, source: &str) -> Option<&'static str> {
        let detail_type = self.detail_type.is_some().then_some("detail_type");
        let order = self.order.is_some().then_some("order");
        let settings = [self.origin_setting, detail_type, order].into_iter().flatten();
        let means_nothing = |setting: &&str| {
            FOR.iter().any(|(name, sources)| name == setting && !sources.contains(&source))
        };
        settings.into_iter().find(means_nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::FOR;
    use crate::source::ALL;

    #[test]
    fn the_sources_are_called_so() {
        let names: Vec<_> = ALL.iter().map(|source| source.name()).collect();
        for (setting, sources) in FOR {
            for source in sources {
                assert!(names.contains(source), "{setting}: {source}");
            }
        }
    }
}
