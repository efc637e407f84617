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
