//! The first commands of a connection, and what their answers say of the server.
//!
//! They are sent together, so that a new connection costs one round trip beside its own. Every connection checks
//! the server: after a failover it may be another one, with other settings.

use std::time::Duration;

use lambda_idempotency_core::clock::Timestamp;
use redis::{Pipeline, Value};

use crate::{
    config::{Address, Config, Login},
    error::{self, Failure, server_failure},
};

/// Scripts with a first line of flags were new in this version.
const OLDEST: u32 = 7;

/// A clock may be ahead by so much, however short the margin for expiry is. Clocks that are synchronised differ by less.
const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

/// The server's words about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Whether it is one of a cluster; `None` if it may not say.
    pub(crate) cluster: Option<bool>,
    /// Which process it is: its name for itself, which changes when it is restarted; 0 if it may not say.
    pub(crate) process: u64,
}

pub(crate) fn commands(config: &Config, login: &Login) -> Pipeline {
    let mut commands = Pipeline::new();
    if let Some(password) = &login.password {
        commands.cmd("AUTH");
        if let Some(user) = &login.user {
            commands.arg(user);
        }
        commands.arg(password);
    }
    if config.database != 0 {
        commands.cmd("SELECT").arg(config.database);
    }
    for script in config.scripts.all() {
        commands.cmd("SCRIPT").arg("LOAD").arg(&script.text);
    }
    commands.cmd("INFO").arg("server").arg("memory").arg("replication").arg("cluster");
    commands
}

/// Reads the answers to [`commands`], and refuses a server that cannot keep idempotency records.
pub(crate) fn facts(
    config: &Config,
    at: &Address,
    login: &Login,
    answers: Vec<Value>,
) -> Result<Facts, Failure> {
    let mut answers = answers.into_iter();
    let mut next = || match answers.next() {
        Some(Value::ServerError(error)) => Err(server_failure(at, &error)),
        Some(answer) => Ok(answer),
        None => Err(error::unreadable(at)),
    };
    if login.password.is_some() {
        next()?;
    }
    if config.database != 0 {
        next()?;
    }
    for _ in config.scripts.all() {
        next()?;
    }
    let info = match next() {
        Ok(Value::BulkString(info)) => String::from_utf8_lossy(&info).into_owned(),
        Ok(_) => return Err(error::unreadable(at)),
        // With `allow_eviction` no permission for it is needed.
        Err(_) if config.allow_eviction => return Ok(Facts::default()),
        Err(failure) => return Err(failure),
    };
    check(config, at, &info, config.timing.clock.now())
}

fn check(config: &Config, at: &Address, info: &str, now: Timestamp) -> Result<Facts, Failure> {
    let value = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    // Valkey says the version of Redis with which it is compatible, too.
    let version = value("redis_version").unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < OLDEST {
        let context = format!(
            "the Redis server {at} has version {version}; this store needs Redis 7 or later, or Valkey"
        );
        return Err(error::misconfigured(context));
    }
    let process = value("run_id").and_then(|id| u64::from_str_radix(id.get(..16)?, 16).ok());
    let facts = Facts {
        cluster: Some(value("cluster_enabled") == Some("1")),
        process: process.unwrap_or(0),
    };
    if value("role").is_some_and(|role| role != "master") && facts.cluster == Some(false) {
        return Err(error::replica(at));
    }
    let micros = value("server_time_usec").and_then(|micros| micros.parse::<u64>().ok());
    let its = micros.map_or(now, |micros| Timestamp::from_millis(micros / 1000));
    let (ahead, allowance) = (its.since(now), config.expiry_margin.max(CLOCKS_DIFFER));
    if ahead > allowance {
        let context = format!(
            "the clock of the Redis server {at} is {} s ahead of this function's ({its} and {now}), so it would remove \
             idempotency records before they expire; it may be {} s ahead (`expiry_margin`). Correct the clock that is wrong",
            ahead.as_secs(),
            allowance.as_secs()
        );
        return Err(error::misconfigured(context));
    }
    match value("maxmemory_policy") {
        Some("noeviction") => Ok(facts),
        _ if config.allow_eviction => Ok(facts),
        policy => {
            let policy = policy.unwrap_or("unknown");
            let context = format!(
                "the Redis server {at} may evict idempotency records, and with each of them the knowledge that its \
                 work was done: its `maxmemory-policy` is {policy}. Set it to noeviction (in ElastiCache by a \
                 parameter group of your own; a serverless cache has volatile-lru for ever, so use a cluster of nodes, MemoryDB \
                 or DynamoDB), or accept that work runs twice with `RedisStoreBuilder::allow_eviction`"
            );
            Err(error::misconfigured(context))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builder::RedisStoreBuilder, store::RedisStore};
    use lambda_idempotency_core::store::StoreErrorKind;

    const GOOD: &str = "redis_version:7.0.15\r\nrun_id:00000000000000ffaa\r\nmaxmemory_policy:noeviction\r\nrole:master\r\ncluster_enabled:0\r\n";

    fn said(info: &str, set: fn(RedisStoreBuilder) -> RedisStoreBuilder) -> Result<Facts, Failure> {
        let store = set(RedisStore::builder("redis://cache")).build().unwrap();
        check(&store.config, &store.config.address, info, NOW)
    }

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    #[test]
    fn a_server_that_keeps_its_records_is_accepted() {
        assert_eq!(said(GOOD, |b| b).unwrap(), Facts { cluster: Some(false), process: 255 });
        let cluster = GOOD.replace("cluster_enabled:0", "cluster_enabled:1");
        assert_eq!(said(&cluster, |b| b).unwrap(), Facts { cluster: Some(true), process: 255 });
        let replica = cluster.replace("master", "slave");
        assert_eq!(said(&replica, |b| b).unwrap().cluster, Some(true), "it knows the primaries");
        for version in ["7.2.4", "8.4.0", "10.0.0"] {
            said(&GOOD.replace("7.0.15", version), |b| b).unwrap();
        }
    }

    /// It is too old, may evict records, or is a replica, which may be promoted.
    #[test]
    fn a_server_that_cannot_keep_them_is_refused() {
        for (has, other, may_pass, said_of) in [
            ("7.0.15", "6.2.14", false, "has version 6.2.14"),
            ("7.0.15", "", false, "needs Redis 7"),
            ("noeviction", "volatile-lru", false, "is volatile-lru"),
            ("noeviction", "allkeys-random", false, "Set it to noeviction"),
            ("maxmemory_policy", "other", false, "is unknown"),
            ("master", "slave", true, "is a replica"),
        ] {
            let info = GOOD.replace(has, other);
            let failure = said(&info, |b| b).unwrap_err();
            assert_eq!(failure.retry, may_pass, "{other}");
            let text = failure.report(false).to_string();
            assert!(text.contains(said_of), "{text}");
            let insists = said(&info, RedisStoreBuilder::allow_eviction).is_ok();
            assert_eq!(insists, text.contains("evict"), "{text}");
        }
    }

    /// It would remove records while they count.
    #[test]
    fn a_server_whose_clock_is_too_far_ahead_is_refused() {
        let at = |seconds: i64| {
            let micros = (1_700_000_000 + seconds) * 1_000_000;
            format!("server_time_usec:{micros}\r\n{GOOD}")
        };
        for seconds in [-86_400, 0, 600] {
            said(&at(seconds), |b| b).unwrap();
        }
        let error = said(&at(601), |b| b).unwrap_err();
        assert_eq!((error.kind(), error.retry), (StoreErrorKind::Misconfigured, false));
        let text = error.report(false).to_string();
        for part in ["601 s ahead", "600 s ahead", "1700000601", "1700000000", "expiry_margin"] {
            assert!(text.contains(part), "{text}");
        }
        said(&at(601), |b| b.expiry_margin(Duration::from_secs(601))).unwrap();
        said(&at(1), |b| b.expiry_margin(Duration::ZERO)).unwrap();
        said(&at(2), |b| b.expiry_margin(Duration::ZERO)).unwrap_err();
    }
}
