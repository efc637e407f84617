//! The settings of a store, by its builder or the environment, and why it cannot be built.

use std::fmt;

use lambda_idempotency_core::retry::Timing;
#[cfg(feature = "from-env")]
use lambda_idempotency_core::settings::{NotText, variable};

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

/// The error of a store that cannot be built.
///
/// `Debug` shows the message, because Rust prints `Debug` when `main` returns an error.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DynamoDbConfigError {
    /// The environment names no table.
    #[error("the environment variable {0} is not set: it names the DynamoDB table to use")]
    NoTable(&'static str),
    /// An environment variable cannot be read.
    #[error(
        "the environment variable {0} is not valid UTF-8 text: write the name or ARN of the DynamoDB table"
    )]
    NotText(&'static str),
    /// The environment names the store in a way that cannot be read.
    #[error(
        "the environment variable {0} does not name a DynamoDB table: write it as dynamodb:TABLE, with the table's \
         name or ARN"
    )]
    UnfitTable(&'static str),
    /// The environment names two tables.
    #[error(
        "the environment variables {} and {} name two DynamoDB tables; remove the one that is not meant",
        .0[0], .0[1]
    )]
    TwoTables([&'static str; 2]),
    /// The environment names no region.
    #[error("no AWS region is configured: set AWS_REGION (Lambda does)")]
    NoRegion,
    /// An attribute name that is empty, too long, or holds quotes or control characters.
    #[error(
        "{0:?} cannot be an attribute name: 1 to 255 bytes, without quotes, backslashes or \
         control characters"
    )]
    UnfitName(String),
    /// The partition of a [`SortKey`](crate::SortKey), or its prefix, that is empty or too long.
    #[error(
        "the partition of a sort key needs 1 to 2048 bytes, and the prefix of derived partitions 1 to 1024"
    )]
    UnfitPartition,
    /// Two attributes have the same name.
    #[error("two attributes are named {0:?}")]
    NameUsedTwice(String),
}

impl fmt::Debug for DynamoDbConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Far below DynamoDB's limit, so that all names fit in a statement of 8192 characters.
const LONGEST_NAME: usize = 255;

/// Refuses names that cannot be quoted in a PartiQL statement, and one name used twice.
pub(crate) fn check(names: &Attributes) -> Result<(), DynamoDbConfigError> {
    let mut seen = Vec::new();
    let sort_key = names.sort_key.as_ref();
    if sort_key.is_some_and(|sort_key| !sort_key.partition.is_fit()) {
        return Err(DynamoDbConfigError::UnfitPartition);
    }
    for name in names.all().into_iter().chain(sort_key.map(|sort_key| &*sort_key.name)) {
        let unfit = |c: char| c.is_control() || matches!(c, '"' | '\'' | '\\');
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains(unfit) {
            return Err(DynamoDbConfigError::UnfitName(name.into()));
        }
        if seen.contains(&name) {
            return Err(DynamoDbConfigError::NameUsedTwice(name.into()));
        }
        seen.push(name);
    }
    Ok(())
}

/// The environment variable that names the table.
#[cfg(feature = "from-env")]
const TABLE: &str = "IDEMPOTENCY_TABLE";
/// The environment variable that names a store of any kind.
#[cfg(feature = "from-env")]
const STORE: &str = "IDEMPOTENCY_STORE";
/// The beginning of its value if the store is in DynamoDB.
#[cfg(feature = "from-env")]
const SCHEME: &str = "dynamodb:";

/// The table that the environment names.
#[cfg(feature = "from-env")]
pub(crate) fn table_from_env() -> Result<String, DynamoDbConfigError> {
    let read = |name| variable(name).map_err(|NotText(name)| DynamoDbConfigError::NotText(name));
    table(read(STORE)?, read(TABLE)?)
}

#[cfg(feature = "from-env")]
/// The table, by the values of the two variables.
fn table(store: Option<String>, table: Option<String>) -> Result<String, DynamoDbConfigError> {
    // Another kind of store is not this one's concern: a function may have two.
    let Some(named) = store.as_deref().and_then(|store| store.strip_prefix(SCHEME)) else {
        return table.ok_or(DynamoDbConfigError::NoTable(TABLE));
    };
    // A name, or an ARN.
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':' | b'/');
    if named.is_empty() || named.starts_with('/') || !named.bytes().all(fits) {
        return Err(DynamoDbConfigError::UnfitTable(STORE));
    }
    match table {
        Some(other) if other != named => Err(DynamoDbConfigError::TwoTables([STORE, TABLE])),
        _ => Ok(named.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{
        Client,
        config::{BehaviorVersion, Region},
    };

    use super::*;
    use crate::{
        attributes::{LONGEST_PARTITION, LONGEST_SORT_KEY, SortKey},
        store::DynamoDbStore,
    };

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

    #[test]
    fn the_default_names_are_valid() {
        assert_eq!(check(&Attributes::default()), Ok(()));
    }

    #[test]
    fn a_partition_of_a_table_with_a_sort_key_has_a_length_that_fits_a_key() {
        for (length, fits) in
            [(0, false), (1, true), (LONGEST_PARTITION, true), (LONGEST_PARTITION + 1, false)]
        {
            let expected = if fits { Ok(()) } else { Err(DynamoDbConfigError::UnfitPartition) };
            let sort_key = Some(SortKey::new("sk", "p".repeat(length)));
            let names = Attributes { sort_key, ..Attributes::default() };
            assert_eq!(check(&names), expected, "{length}");
            let prefix =
                "p".repeat(length.saturating_sub(usize::from(length > 1) * LONGEST_SORT_KEY));
            let sort_key = Some(SortKey::derived("sk", prefix));
            let names = Attributes { sort_key, ..Attributes::default() };
            assert_eq!(check(&names), expected, "{length}");
        }
    }

    #[test]
    fn a_name_may_have_255_bytes() {
        let names = Attributes { data: "x".repeat(255).into(), ..Attributes::default() };
        assert_eq!(check(&names), Ok(()));
    }

    #[test]
    fn a_name_that_could_end_its_quotes_is_refused() {
        for name in ["", "a\"b", "a'b", "a\\", "a\n", &"x".repeat(256)] {
            let names = Attributes { data: name.to_owned().into(), ..Attributes::default() };
            assert_eq!(check(&names), Err(DynamoDbConfigError::UnfitName(name.into())));
        }
    }

    #[test]
    fn a_name_is_used_once() {
        let names = Attributes { data: "status".into(), ..Attributes::default() };
        assert_eq!(check(&names), Err(DynamoDbConfigError::NameUsedTwice("status".into())));
    }

    #[cfg(feature = "from-env")]
    fn read(store: Option<&str>, name: Option<&str>) -> Result<String, DynamoDbConfigError> {
        table(store.map(str::to_owned), name.map(str::to_owned))
    }

    #[cfg(feature = "from-env")]
    #[test]
    fn a_table_must_be_named() {
        let error = read(None, None).unwrap_err();
        assert!(error.to_string().contains("IDEMPOTENCY_TABLE"), "{error}");
        assert_eq!(read(None, Some("orders")).as_deref(), Ok("orders"));
    }

    #[cfg(feature = "from-env")]
    #[test]
    fn either_variable_names_the_table_and_both_only_the_same() {
        let arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/orders";
        assert_eq!(read(Some("dynamodb:orders"), None).as_deref(), Ok("orders"));
        assert_eq!(read(Some(&format!("dynamodb:{arn}")), None).as_deref(), Ok(arn));
        assert_eq!(read(Some("dynamodb:orders"), Some("orders")).as_deref(), Ok("orders"));
        let error = read(Some("dynamodb:orders"), Some("others")).unwrap_err();
        assert!(matches!(error, DynamoDbConfigError::TwoTables(_)), "{error}");
        assert_eq!(read(Some("redis://cache"), Some("orders")).as_deref(), Ok("orders"));
    }

    #[cfg(feature = "from-env")]
    #[test]
    fn a_table_that_cannot_be_read_is_refused() {
        for store in ["dynamodb:", "dynamodb://orders", "dynamodb:or ders", "dynamodb:orders?a=b"] {
            let error = read(Some(store), None).unwrap_err();
            assert!(error.to_string().contains("dynamodb:TABLE"), "{store}: {error}");
        }
    }
}
