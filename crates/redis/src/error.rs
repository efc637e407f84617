//! Errors that name the remedy and contain no data.
//!
//! The server's errors may quote what was sent to it. This module passes on only the error code, and the message
//! up to its first quotation.

use redis::{RedisError, ServerError};

use lambda_idempotency_core::store::{StoreError, StoreErrorKind};

use crate::{address::Address, item::Corrupt, retry::TimedOut};

/// A failed request, and whether another may succeed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: StoreErrorKind,
    context: String,
    cause: Option<Cause>,
    /// Another request may succeed.
    pub(crate) retry: bool,
    /// The write may have been applied, or may still be applied.
    pub(crate) in_doubt: bool,
    /// What to do before that other request.
    pub(crate) first: First,
}

/// What to do before a request is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum First {
    Nothing,
    /// Leave this connection.
    Reconnect,
    /// Leave this connection, and ask which server has the key: a server may have become a primary, or a replica.
    FindServer,
    /// Ask this server which one has the key.
    AskAt(Address),
    /// Send only this request to this server, which is receiving the key.
    GoTo(Address),
}

/// The message of the server or of the connection.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl Failure {
    pub(crate) const fn new(kind: StoreErrorKind, context: String) -> Self {
        let first = First::Nothing;
        Self { kind, context, cause: None, retry: false, in_doubt: false, first }
    }

    fn transient(first: First, context: String) -> Self {
        Self { retry: true, first, ..Self::new(StoreErrorKind::Unavailable, context) }
    }

    /// No response, or one without information.
    fn unanswered(context: String) -> Self {
        Self { in_doubt: true, ..Self::transient(First::FindServer, context) }
    }

    pub(crate) fn timed_out(at: &Address, TimedOut(limit): TimedOut) -> Self {
        Self::unanswered(format!(
            "the Redis server {at} did not answer within {} ms",
            limit.as_millis()
        ))
    }

    pub(crate) fn unreadable(at: &Address) -> Self {
        Self::unanswered(format!(
            "the Redis server {at} sent another answer than its commands have"
        ))
    }

    /// The connection ended while the answer was awaited.
    pub(crate) fn broken(at: &Address, error: &RedisError) -> Self {
        Self::unanswered(format!("the connection to the Redis server {at} broke")).because_of(error)
    }

    /// Nothing was sent.
    pub(crate) fn not_connected(at: &Address, cause: Option<String>) -> Self {
        let context = format!("the Redis server {at} could not be reached");
        Self { cause: cause.map(Cause), ..Self::transient(First::FindServer, context) }
    }

    /// The user's function for the password returned an error.
    pub(crate) fn no_password(at: &Address) -> Self {
        let context = format!("the password for the Redis server {at} could not be loaded");
        Self::transient(First::Reconnect, context)
    }

    /// The server, which is not of a cluster, follows another one.
    pub(crate) fn replica(at: &Address) -> Self {
        let context = format!(
            "the Redis server {at} is a replica; use the address of the primary (in ElastiCache: the primary endpoint)"
        );
        Self::transient(First::Reconnect, context)
    }

    pub(crate) fn misconfigured(context: String) -> Self {
        Self::new(StoreErrorKind::Misconfigured, context)
    }

    /// There was no time for even one request.
    pub(crate) fn too_late(at: &Address) -> Self {
        Self::new(
            StoreErrorKind::Unavailable,
            format!("no time left to reach the Redis server {at}"),
        )
    }

    /// No server of the cluster has the slot of a key.
    pub(crate) fn no_server(at: &Address) -> Self {
        let context = format!("the Redis cluster of {at} has no primary for some of its slots");
        Self::transient(First::FindServer, context)
    }

    /// The server has the write; its replicas did not say so in time.
    pub(crate) fn not_replicated(at: &Address, least: u32) -> Self {
        let context = format!(
            "fewer than {least} replicas of the Redis server {at} have confirmed a write that it has"
        );
        Self { in_doubt: true, ..Self::transient(First::Nothing, context) }
    }

    pub(crate) fn corrupt(at: &Address, Corrupt { field, problem }: &Corrupt) -> Self {
        let context = format!(
            "a value in the Redis server {at} is not an idempotency record: its field `{field}` {problem}"
        );
        Self::new(StoreErrorKind::Corrupt, context)
    }

    fn because_of(mut self, error: &RedisError) -> Self {
        self.cause = Some(Cause(format!("{:?}", error.kind())));
        self
    }

    pub(crate) const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    pub(crate) fn with_doubt(mut self, in_doubt: bool) -> Self {
        self.in_doubt = in_doubt;
        self
    }

    /// Whether it was only sent to a wrong server.
    pub(crate) const fn is_redirection(&self) -> bool {
        matches!(self.first, First::AskAt(_) | First::GoTo(_))
    }

    /// The error to report, given whether an earlier attempt was left in doubt.
    pub(crate) fn report(self, in_doubt: bool) -> StoreError {
        let context = if in_doubt && !self.in_doubt {
            let context = self.context;
            format!("an attempt had no answer and may have been applied; after it: {context}")
        } else {
            self.context
        };
        let error = StoreError::new(self.kind, context).with_doubt(in_doubt || self.in_doubt);
        match self.cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

/// Classifies an error of the server.
///
/// <https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors>
pub(crate) fn server_failure(at: &Address, error: &ServerError) -> Failure {
    let (code, detail) = (error.code(), error.details().unwrap_or_default());
    let wait =
        |what: &str| Failure::transient(First::Nothing, format!("the Redis server {at} {what}"));
    let failure = match code {
        "MOVED" | "ASK" => redirected(at, code, detail),
        // It was restarted, or somebody removed the scripts. A new connection loads them.
        "NOSCRIPT" => {
            Failure { first: First::Reconnect, ..wait("has lost the scripts of this store") }
        }
        // `UNBLOCKED` is the end of a `WAIT` at a primary that becomes a replica.
        "READONLY" | "MASTERDOWN" | "UNBLOCKED" => {
            Failure { first: First::FindServer, ..wait("is a replica, after a failover perhaps") }
        }
        "CLUSTERDOWN" | "TRYAGAIN" => Failure {
            first: First::FindServer,
            ..wait("is in a cluster that does not serve the key now")
        },
        "LOADING" => wait("is loading its data"),
        "BUSY" => wait("is busy with a script"),
        "NOREPLICAS" => wait("has fewer replicas than its `min-replicas-to-write`"),
        "MISCONF" => wait("takes no writes, because it cannot save its data: read its log"),
        "OOM" => wait(
            "has used up its memory (`maxmemory`), so no key can be claimed: enlarge it, or shorten the retention",
        ),
        "ERR" if detail.contains("max number of clients") => {
            Failure { first: First::Reconnect, ..wait("has too many clients (`maxclients`)") }
        }
        "NOAUTH" | "WRONGPASS" => Failure::new(
            StoreErrorKind::Denied,
            format!("the Redis server {at} refused user or password"),
        ),
        "NOPERM" => Failure::new(
            StoreErrorKind::Denied,
            format!(
                "the Redis server {at} denies the user a command or a key; the documentation of \
                 lambda-idempotency-redis lists what it needs"
            ),
        ),
        "WRONGTYPE" => Failure::new(
            StoreErrorKind::Corrupt,
            format!("a key in the Redis server {at} holds another type than an idempotency record"),
        ),
        _ => Failure {
            // A script that ends in the middle keeps what it has done. Ours cannot, as far as we know.
            in_doubt: true,
            ..Failure::new(
                StoreErrorKind::Refused,
                format!("the Redis server {at} refused a command"),
            )
        },
    };
    // That of `NOPERM` names the user.
    let detail = if code == "NOPERM" { "" } else { unquoted(detail) };
    let cause = if detail.is_empty() { code.to_owned() } else { format!("{code}: {detail}") };
    Failure { cause: Some(Cause(cause)), ..failure }
}

/// `SLOT HOST:PORT`: another server of the cluster has the key, or is receiving it.
fn redirected(at: &Address, code: &str, detail: &str) -> Failure {
    let target = detail.split_ascii_whitespace().nth(1);
    let target = target.and_then(|text| Address::parse(text, &at.host));
    let context = format!("the Redis server {at} does not have the key any more");
    let first = match (code, target) {
        (_, None) => First::FindServer,
        ("ASK", Some(address)) => First::GoTo(address),
        (_, Some(address)) => First::AskAt(address),
    };
    Failure::transient(first, context)
}

/// The message up to its first quotation, because the rest may be data.
pub(crate) fn unquoted(message: &str) -> &str {
    let end = message.find(['\'', '"', '{', '[', '`']).unwrap_or(message.len());
    message.get(..end).unwrap_or_default().trim_end()
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
