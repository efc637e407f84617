//! Why a store cannot be built.

use std::fmt;

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
