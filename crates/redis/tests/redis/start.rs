//! Refusals when a function starts, and logins.

use std::{
    error::Error as _,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use lambda_idempotency_core::store::{Store as _, StoreErrorKind, Verdict};
use lambda_idempotency_redis::{RedisConfigError, RedisStore};

use crate::{
    servers::Server,
    writes::{claim, error_of, in_secs, key, one, unknown, within, wrote},
};

/// The error of the check with all of its causes, as `main` prints it.
async fn refused(store: &RedisStore) -> String {
    let error = store.check().await.unwrap_err();
    let RedisConfigError::Server(cause) = &error else { panic!("{error:?}") };
    assert!(!cause.may_have_applied());
    let (shown, cause) = (format!("{error:?}"), error.source().unwrap());
    assert!(shown.contains(&cause.to_string()), "`main` prints the cause: {shown}");
    format!("{shown} {:?}", cause.source())
}

#[tokio::test]
async fn a_server_that_evicts_is_refused_unless_somebody_insists() {
    let server = Server::redis(&["--maxmemory-policy", "allkeys-lru"]);
    let text = refused(&server.store()).await;
    assert!(text.contains("allkeys-lru") && text.contains("allow_eviction"), "{text}");
    // Without the check, the first call says it.
    let verdict = one(&server.store(), claim(1, 1), in_secs(60)).await;
    unknown(verdict, StoreErrorKind::Misconfigured, false);
    let store = server.builder().allow_eviction().build().unwrap();
    store.check().await.unwrap();
    wrote(&store, claim(1, 1)).await;
}

#[tokio::test]
async fn who_had_no_time_for_a_connection_is_not_told_that_the_server_cannot_be_reached() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let store = RedisStore::new(&format!("redis://{}", silent.local_addr().unwrap())).unwrap();
    let verdict = store.write(&[claim(1, 1)], within(100)).await.remove(0);
    let Verdict::Unknown(error) = verdict else { panic!("{verdict:?}") };
    assert!(error.to_string().contains("the call ended before there was a connection"), "{error}");
}

#[tokio::test]
async fn a_replica_is_refused_and_never_read() {
    let primary = Server::redis(&[]);
    let replica = Server::redis(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    let store = primary.store();
    store.write(&[claim(1, 1)], in_secs(60)).await;
    let text = refused(&replica.store()).await;
    assert!(text.contains("is a replica"), "{text}");
    // A server that becomes a replica while it is used: it answers neither writes nor reads.
    let port = replica.port.to_string();
    replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    primary.command(&["REPLICAOF", "127.0.0.1", &port]).await;
    let error = store.read(&[key(1)], within(500)).await.pop().unwrap().unwrap_err();
    assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Unavailable, false));
    let error = error_of(one(&store, claim(1, 2), within(500)).await);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn the_documented_permissions_are_enough() {
    let server = Server::redis(&[]);
    let mut words = vec!["ACL", "SETUSER", "orders", "on", ">s3cr3t", "~idempotency:*"];
    words.extend(lambda_idempotency_redis::COMMANDS.iter().map(|command| &**command));
    server.command(&words).await;
    let url = format!("redis://orders:s3cr3t@127.0.0.1:{}", server.port);
    let store = RedisStore::connect(&url).await.unwrap();
    wrote(&store, claim(1, 1)).await;
    assert!(store.read(&[key(1)], in_secs(60)).await[0].as_ref().unwrap().is_some());
    let outside = RedisStore::builder(&url).prefix("orders:").build().unwrap();
    unknown(one(&outside, claim(1, 1), in_secs(60)).await, StoreErrorKind::Denied, false);
}

#[tokio::test]
async fn a_login_that_is_not_enough_is_denied_at_once_and_not_named() {
    let server =
        Server::redis(&["--requirepass", "right", "--user", "s3cr3t_user", "on", ">s3cr3t"]);
    for (login, said) in [
        (":s3cr3t@", "refused user or password"),
        ("nobody:s3cr3t@", "refused user or password"),
        ("", "refused user or password"),
        ("s3cr3t_user:s3cr3t@", "denies the user"),
    ] {
        let url = format!("redis://{login}127.0.0.1:{}", server.port);
        let text = refused(&RedisStore::new(&url).unwrap()).await;
        assert!(text.contains(said) && !text.contains("s3cr3t"), "{text}");
    }
    let url = format!("redis://:right@127.0.0.1:{}", server.port);
    RedisStore::connect(&url).await.unwrap();
}

/// Loading it may fail. Somebody has changed it since it was loaded. The function takes longer than a connection may, and longer than a call.
#[tokio::test]
async fn a_password_that_is_refused_is_loaded_once_more_and_loading_has_a_time_of_its_own() {
    static LOADED: AtomicU32 = AtomicU32::new(0);
    let server = Server::redis(&["--user", "orders", "on", ">new", "~*", "+@all"]);
    let url = format!("redis://orders@127.0.0.1:{}", server.port);
    let changed =
        RedisStore::builder(&url).password(async || match LOADED.fetch_add(1, Ordering::Relaxed) {
            0 => Err("s3cr3t"),
            1 => Ok("old".to_owned()),
            _ => Ok("new".to_owned()),
        });
    wrote(&changed.build().unwrap(), claim(1, 1)).await;
    assert_eq!(LOADED.load(Ordering::Relaxed), 3);
    let wrong = RedisStore::builder(&url);
    let wrong = wrong.password(async || Ok::<_, std::io::Error>("s3cr3t".to_owned()));
    unknown(
        one(&wrong.build().unwrap(), claim(2, 1), in_secs(60)).await,
        StoreErrorKind::Denied,
        false,
    );
    let slow = RedisStore::builder(&url).connect_timeout(Duration::from_millis(500));
    let slow = slow.password(async || {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        Ok::<_, std::io::Error>("new".to_owned())
    });
    let slow = slow.build().unwrap();
    let late = one(&slow, claim(3, 1), within(500)).await;
    let text = unknown(late, StoreErrorKind::Unavailable, false).to_string();
    assert!(text.contains("`password` has not returned for"), "{text}");
    wrote(&slow, claim(3, 1)).await;
}

#[tokio::test]
async fn each_database_and_each_prefix_has_its_own_records() {
    let server = Server::redis(&[]);
    let other = RedisStore::new(&format!("{}/3", server.url())).unwrap();
    let prefixed = server.builder().prefix("other*:").build().unwrap();
    for store in [server.store(), other, prefixed] {
        wrote(&store, claim(1, 1)).await;
        let page = lambda_idempotency_core::browse::Browse::count(&store, in_secs(60)).await;
        assert_eq!(page.unwrap(), 1);
    }
}

/// The files of `tls` are a root certificate made for these tests, and a server's of it for `localhost`.
#[tokio::test]
async fn tls_checks_the_server_with_the_certificates_that_are_trusted() {
    let tls = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis/tls/");
    let file = |name: &str| format!("{tls}{name}");
    let (certificate, secret, root) = (file("server.pem"), file("server.key"), file("root.pem"));
    // The server has its usual port as well, for the tests themselves.
    let server = Server::redis_with(|port| {
        let words = ["--tls-port", &port.to_string(), "--tls-cert-file", &certificate];
        let more =
            ["--tls-key-file", &secret, "--tls-ca-cert-file", &root, "--tls-auth-clients", "no"];
        words.iter().chain(&more).map(|word| (*word).to_owned()).collect()
    });
    let url = |host: &str| format!("rediss://{host}:{}", server.more_ports[1]);
    let trusting = |host: &str| {
        RedisStore::builder(&url(host)).root_certificates(std::fs::read(&root).unwrap())
    };
    let store = trusting("localhost").build().unwrap();
    store.check().await.unwrap();
    wrote(&store, claim(1, 1)).await;
    assert!(server.store().read(&[key(1)], in_secs(60)).await[0].as_ref().unwrap().is_some());

    // Another name than that in the certificate, and a certificate that nobody trusts here.
    let renamed = trusting("127.0.0.1").build().unwrap();
    let stranger = RedisStore::new(&url("localhost")).unwrap();
    for store in [renamed, stranger] {
        let error = store.read(&[key(1)], within(500)).await.pop().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Unavailable, false));
    }
}

#[test]
fn debug_shows_no_secret() {
    let builder = RedisStore::builder("redis://s3cr3t-user:s3cr3t@cache:6380/2");
    let shown = format!("{builder:?} {:?}", builder.clone().build().unwrap());
    assert!(!shown.contains("s3cr3t") && shown.contains("cache:6380"), "{shown}");
}
