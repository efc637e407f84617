//! The settings of a store, as its requests need them.

use std::fmt;

use lambda_idempotency_core::settings::Timing;

use crate::attributes::Attributes;

/// The most requests at a time. Ten of them may be claims: a batch of ten records, the usual size for a queue, needs one
/// round trip even without PartiQL.
pub(crate) const MOST_REQUESTS: usize = 12;

/// The settings of a store.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) table: String,
    pub(crate) region: String,
    pub(crate) attributes: Attributes,
    /// The index of what workers have left.
    pub(crate) index: Option<String>,
    pub(crate) timing: Timing,
    pub(crate) partiql: bool,
    pub(crate) sdk_logs: bool,
}

impl Config {
    /// Whether PartiQL statements may be used. There is no documented PartiQL syntax for a table
    /// that is named by its ARN.
    pub(crate) fn statements(&self) -> bool {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        self.partiql && self.table.bytes().all(plain)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbStore")
            .field("table", &self.table)
            .field("region", &self.region)
            .field("index", &self.index)
            .field("attempt_timeout", &self.timing.attempt_timeout)
            .field("partiql", &self.partiql)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{
        Client,
        config::{BehaviorVersion, Region},
    };

    use crate::store::DynamoDbStore;

    #[test]
    fn statements_are_used_where_they_are_wanted_and_can_name_the_table() {
        let arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/orders";
        for (table, partiql, statements) in
            [("Orders_1-a.b", true, true), ("orders", false, false), (arn, true, false)]
        {
            let config = aws_sdk_dynamodb::Config::builder()
                .behavior_version(BehaviorVersion::v2026_01_12())
                .region(Region::new("eu-west-1"))
                .build();
            let builder = DynamoDbStore::builder(Client::from_conf(config), table);
            let builder = if partiql { builder } else { builder.without_partiql() };
            assert_eq!(builder.build().unwrap().config.statements(), statements, "{table}");
        }
    }
}
