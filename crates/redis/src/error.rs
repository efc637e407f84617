//! Errors that name the remedy and contain no data.
//!
//! The server's errors may quote what was sent to it. This module passes on only the error code, and the message
//! up to its first quotation.

use lambda_idempotency_core::{
    retry::{self, TimedOut, unquoted},
    settings::NoPassword,
    store::StoreErrorKind,
};
use redis::{RedisError, ServerError};

use crate::{config::Address, item::Corrupt};

/// A failed request, and whether another may succeed.
pub(crate) type Failure = retry::RequestFailure<First>;

/// The step before a request is sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum First {
    #[default]
    Nothing,
    /// Read what a claim would have met.
    Look,
    /// Leave this connection.
    Reconnect,
    /// Leave this connection, and ask which server has the key: a server may have become a primary, or a replica.
    FindServer,
    /// Ask this server which one has the key.
    AskAt(Address),
    /// Send only this request to this server, which is receiving the key.
    GoTo(Address),
}

/// It was not applied, and may be sent again.
fn transient(first: First, context: String) -> Failure {
    Failure::transient(StoreErrorKind::Unavailable, context).with_detail(first)
}

/// No response, or one without information.
fn unanswered(context: String) -> Failure {
    Failure::unanswered(context).with_detail(First::FindServer)
}

/// Whether it was only sent to a wrong server.
pub(crate) const fn is_redirection(failure: &Failure) -> bool {
    matches!(failure.detail, First::AskAt(_) | First::GoTo(_))
}

pub(crate) fn timed_out(at: &Address, TimedOut(limit): TimedOut) -> Failure {
    unanswered(format!("the Redis server {at} did not answer within {} ms", limit.as_millis()))
}

pub(crate) fn unreadable(at: &Address) -> Failure {
    unanswered(format!("the Redis server {at} sent another answer than its commands have"))
}

/// The connection ended while the answer was awaited.
pub(crate) fn broken(at: &Address, error: &RedisError) -> Failure {
    unanswered(format!("the connection to the Redis server {at} broke"))
        .because(format!("{:?}", error.kind()))
}

/// Nothing was sent.
pub(crate) fn not_connected(at: &Address, cause: String) -> Failure {
    let context = format!("the Redis server {at} could not be reached");
    transient(First::FindServer, context).because(cause)
}

/// There is no password for a connection.
pub(crate) fn no_password(at: &Address, why: NoPassword) -> Failure {
    let context = format!("the password for the Redis server {at} could not be loaded: {why}");
    transient(First::Reconnect, context)
}

/// Whether the server refused the password.
pub(crate) fn is_of_password(failure: &Failure) -> bool {
    failure.kind() == StoreErrorKind::Denied && failure.detail == First::Reconnect
}

/// The server, which is not of a cluster, follows another one.
pub(crate) fn replica(at: &Address) -> Failure {
    let context = format!(
        "the Redis server {at} is a replica; use the address of the primary (in ElastiCache: the primary endpoint)"
    );
    transient(First::Reconnect, context)
}

pub(crate) fn misconfigured(context: String) -> Failure {
    Failure::new(StoreErrorKind::Misconfigured, context)
}

/// There was no time for even one request.
pub(crate) fn too_late(at: &Address) -> Failure {
    Failure::new(
        StoreErrorKind::Unavailable,
        format!("no time left to reach the Redis server {at}"),
    )
}

/// The call had less time than a connection may take. Nothing was sent. Perhaps another server has taken this one's place.
pub(crate) fn ended_connecting(at: &Address) -> Failure {
    let context = format!(
        "the call ended before there was a connection to the Redis server {at}; if calls with more time have none \
         either, check its address and security group"
    );
    Failure::new(StoreErrorKind::Unavailable, context).with_detail(First::FindServer)
}

/// No server of the cluster has the slot of a key.
pub(crate) fn no_server(at: &Address) -> Failure {
    let context = format!("the Redis cluster of {at} has no primary for some of its slots");
    transient(First::FindServer, context)
}

/// A position in the listing of another store.
pub(crate) fn other_cursor() -> Failure {
    Failure::new(StoreErrorKind::Refused, "a cursor that is not of this store".to_owned())
}

/// The steps of a listing count no more.
pub(crate) fn listing_ended(at: &Address) -> Failure {
    let context = format!(
        "the Redis server {at} was restarted or replaced, or keys were given to other servers, while records were \
         listed, so some would be missing: list them again from the beginning"
    );
    Failure::new(StoreErrorKind::Refused, context)
}

pub(crate) fn no_memory(at: &Address) -> Failure {
    let context = format!(
        "the Redis server {at} has used up its memory (`maxmemory`), so no key can be claimed: enlarge it, or shorten the \
         retention"
    );
    transient(First::Look, context)
}

pub(crate) fn corrupt(at: &Address, Corrupt { field, problem }: &Corrupt) -> Failure {
    let context = format!(
        "a value in the Redis server {at} is not an idempotency record: its field `{field}` {problem}"
    );
    Failure::new(StoreErrorKind::Corrupt, context)
}

/// Classifies an error of the server.
///
/// <https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors>
pub(crate) fn server_failure(at: &Address, error: &ServerError) -> Failure {
    let (code, detail) = (error.code(), error.details().unwrap_or_default());
    let first = |first, what: &str| transient(first, format!("the Redis server {at} {what}"));
    let wait = |what: &str| first(First::Nothing, what);
    let failure = match code {
        "MOVED" | "ASK" => redirected(at, code, detail),
        // It was restarted, or somebody removed the scripts. A new connection loads them.
        "NOSCRIPT" => first(First::Reconnect, "has lost the scripts of this store"),
        "READONLY" | "MASTERDOWN" => {
            first(First::FindServer, "is a replica, after a failover perhaps")
        }
        "CLUSTERDOWN" | "TRYAGAIN" => {
            first(First::FindServer, "is in a cluster that does not serve the key now")
        }
        "LOADING" => wait("is loading its data"),
        "BUSY" => wait("is busy with a script"),
        "NOREPLICAS" => wait("has fewer replicas than its `min-replicas-to-write`"),
        "MISCONF" => wait("takes no writes, because it cannot save its data: read its log"),
        "OOM" => no_memory(at),
        "ERR" if detail.contains("max number of clients") => {
            first(First::Reconnect, "has too many clients (`maxclients`)")
        }
        "NOAUTH" | "WRONGPASS" => Failure::new(
            StoreErrorKind::Denied,
            format!("the Redis server {at} refused user or password"),
        )
        .with_detail(First::Reconnect),
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
        // A script that ends in the middle keeps what it has done. Ours cannot, as far as we know.
        _ => Failure::new(
            StoreErrorKind::Refused,
            format!("the Redis server {at} refused a command"),
        )
        .with_doubt(true),
    };
    // That of `NOPERM` names the user.
    let detail = if code == "NOPERM" { "" } else { unquoted(detail) };
    let cause = if detail.is_empty() { code.to_owned() } else { format!("{code}: {detail}") };
    failure.because(cause)
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
    transient(first, context)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use redis::Value;

    use super::*;

    fn at() -> Address {
        Address { host: "cache".into(), port: 6379 }
    }

    /// How this line of the server is classified.
    fn said(line: &str) -> Failure {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        let Value::ServerError(error) = value else { unreachable!("{line}") };
        server_failure(&at(), &error)
    }

    #[test]
    fn what_may_pass_is_tried_again_and_was_not_applied() {
        for (line, first) in [
            ("LOADING Redis is loading the dataset in memory", First::Nothing),
            ("BUSY Redis is busy running a script.", First::Nothing),
            ("OOM command not allowed when used memory > 'maxmemory'.", First::Look),
            ("MISCONF Redis is configured to save RDB snapshots", First::Nothing),
            ("NOREPLICAS Not enough good replicas to write.", First::Nothing),
            ("NOSCRIPT No matching script. Please use EVAL.", First::Reconnect),
            ("ERR max number of clients reached", First::Reconnect),
            ("READONLY You can't write against a read only replica.", First::FindServer),
            ("MASTERDOWN Link with MASTER is down", First::FindServer),
            ("CLUSTERDOWN The cluster is down", First::FindServer),
            ("TRYAGAIN Multiple keys request during rehashing of slot", First::FindServer),
        ] {
            let failure = said(line);
            assert_eq!(failure.detail, first, "{line}");
            assert!(failure.retry && !failure.in_doubt && !is_redirection(&failure), "{line}");
            assert_eq!(failure.kind(), StoreErrorKind::Unavailable, "{line}");
        }
    }

    #[test]
    fn a_redirection_names_the_server_to_ask_or_to_go_to() {
        let other = Address { host: "b".into(), port: 6381 };
        assert_eq!(said("MOVED 3999 b:6381").detail, First::AskAt(other.clone()));
        assert_eq!(said("ASK 3999 b:6381").detail, First::GoTo(other));
        let same_host = Address { host: "cache".into(), port: 6381 };
        assert_eq!(said("MOVED 3999 :6381").detail, First::AskAt(same_host));
        assert_eq!(said("MOVED nonsense").detail, First::FindServer);
        assert!(is_redirection(&said("MOVED 3999 b:6381")) && said("ASK 3999 b:6381").retry);
    }

    #[test]
    fn what_will_not_pass_is_reported_at_once() {
        for (line, kind, in_doubt) in [
            ("NOAUTH Authentication required.", StoreErrorKind::Denied, false),
            ("WRONGPASS invalid username-password pair", StoreErrorKind::Denied, false),
            ("NOPERM No permissions to access a key", StoreErrorKind::Denied, false),
            ("WRONGTYPE Operation against a key", StoreErrorKind::Corrupt, false),
            ("ERR unknown command", StoreErrorKind::Refused, true),
        ] {
            let failure = said(line);
            assert_eq!(
                (failure.kind(), failure.in_doubt, failure.retry),
                (kind, in_doubt, false),
                "{line}"
            );
        }
    }

    #[test]
    fn messages_are_passed_on_up_to_what_they_quote() {
        let error =
            said("ERR unknown command 's3cr3t', with args beginning with: 's3cr3t'").report(false);
        assert_eq!(error.source().unwrap().to_string(), "ERR: unknown command");
        assert!(!format!("{error:?}").contains("s3cr3t"));
        // From version 7.2 on.
        let error =
            said("NOPERM User s3cr3t has no permissions to run the 'info' command").report(false);
        assert!(!format!("{error:?} {:?}", error.source()).contains("s3cr3t"), "{error:?}");
    }

    #[test]
    fn an_attempt_before_that_was_left_in_doubt_is_said() {
        let error = said("NOPERM no").report(true);
        assert!(
            error.may_have_applied() && error.to_string().contains("an attempt had no answer"),
            "{error}"
        );
        let error = timed_out(&at(), TimedOut(std::time::Duration::from_millis(7))).report(true);
        assert!(error.may_have_applied() && error.to_string().contains("within 7 ms"), "{error}");
    }
}
