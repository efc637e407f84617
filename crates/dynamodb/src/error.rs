//! Errors that name the request and the table, the remedy where there is one, and no data.

use std::fmt;

use lambda_idempotency_core::{retry, store::StoreErrorKind};

use crate::{
    config::{Config, MOST_REQUESTS},
    item::Corrupt,
    retry::TimedOut,
};

/// The request that an error names.
#[derive(Clone, Copy)]
pub(crate) struct Doing<'a> {
    pub(crate) config: &'a Config,
    /// The API operation.
    pub(crate) operation: &'static str,
    /// The permissions it needs, without `dynamodb:`.
    pub(crate) permission: &'a str,
}

impl fmt::Display for Doing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on DynamoDB table {}", self.operation, self.config.table)
    }
}

/// A failed request, and whether another may succeed.
pub(crate) type Failure = retry::Failure;

pub(crate) fn timed_out(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Failure {
    Failure::unanswered(format!("{doing} had no answer within {} ms", limit.as_millis()))
}

/// There was no time for even one request.
pub(crate) fn too_late(config: &Config) -> Failure {
    let context = format!("no time left to reach DynamoDB table {}", config.table);
    Failure::new(StoreErrorKind::Unavailable, context)
}

/// Other calls of this process had all requests that it may have on their way, until there was no time left.
pub(crate) fn all_in_use(config: &Config, kind: StoreErrorKind) -> Failure {
    let context = format!(
        "no time left to reach DynamoDB table {}: {MOST_REQUESTS} other requests of this process were on their way; make \
         fewer calls at a time, or several payloads one batch with `run_many`",
        config.table
    );
    Failure::new(kind, context)
}

/// DynamoDB answered for some keys and left these unprocessed.
pub(crate) fn unprocessed(config: &Config) -> Failure {
    let context = format!("DynamoDB table {} left keys unread: throttled", config.table);
    Failure::transient(StoreErrorKind::Throttled, context)
}

/// The table's key is not the one that the attributes name.
pub(crate) fn other_schema(config: &Config) -> Failure {
    let context = format!("DynamoDB table {}: {}", config.table, config.attributes.needed_key());
    Failure::new(StoreErrorKind::Misconfigured, context)
}

pub(crate) fn contended(config: &Config) -> Failure {
    let context = format!(
        "a record in DynamoDB table {} was created and deleted between the requests of this call, again and again",
        config.table
    );
    Failure::new(StoreErrorKind::Contended, context)
}

pub(crate) fn corrupt(config: &Config, Corrupt { attribute, problem }: Corrupt) -> Failure {
    let context = format!(
        "an item in DynamoDB table {} is not an idempotency record: attribute `{attribute}` \
         {problem}",
        config.table
    );
    Failure::new(StoreErrorKind::Corrupt, context)
}
