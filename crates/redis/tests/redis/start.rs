//! What is refused when a function starts, and who may log in.

use std::{
    error::Error as _,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    store::{Store as _, StoreErrorKind, Verdict},
};
use lambda_idempotency_redis::{RedisConfigError, RedisStore};

use crate::{
    servers::Server,
    writes::{claim, in_secs, key, one, unknown, within, wrote},
};

/// The error of the check, as the user sees it.
async fn refused(store: &RedisStore) -> String {
    let error = store.check().await.unwrap_err();
    let RedisConfigError::Server(cause) = &error else { panic!("{error:?}") };
    assert!(!cause.may_have_applied());
    let cause = error.source().unwrap().to_string();
    assert!(format!("{error:?}").contains(&cause), "`main` prints the cause: {error:?}");
    cause
}

#[tokio::test]
async fn a_server_that_evicts_is_refused_unless_somebody_insists() {
    let server = Server::redis(&["--maxmemory-policy", "allkeys-lru"]);
    let text = refused(&server.store()).await;
    assert!(text.contains("allkeys-lru") && text.contains("allow_eviction"), "{text}");
    // Without the check, the first call says it.
    let verdict = server.store().write(&[claim(1, 1)], in_secs(60)).await.pop().unwrap();
    unknown(verdict, StoreErrorKind::Misconfigured, false);
    let store = server.builder().allow_eviction().build().unwrap();
    store.check().await.unwrap();
    wrote(&store, claim(1, 1)).await;
}

/// A clock that is behind that of the machine, where the server is.
struct Behind(Duration);

impl Clock for Behind {
    fn now(&self) -> Timestamp {
        SystemClock.now().minus(self.0)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        SystemClock.sleep(duration)
    }
}

/// It would remove each record as it is written.
#[tokio::test]
async fn a_server_whose_clock_is_ahead_is_refused_at_the_start_and_by_each_connection() {
    let server = Server::redis(&[]);
    let behind =
        |seconds| server.builder().clock(Behind(Duration::from_secs(seconds))).build().unwrap();
    behind(500).check().await.unwrap();
    let store = behind(7200);
    let deadline = SystemClock.now().minus(Duration::from_secs(7190));
    let verdict = store.write(&[claim(1, 1)], deadline).await.pop().unwrap();
    let error = unknown(verdict, StoreErrorKind::Misconfigured, false);
    for text in [refused(&store).await, error.to_string()] {
        assert!(text.contains("s ahead") && text.contains("expiry_margin"), "{text}");
    }
    assert_eq!(server.command(&["DBSIZE"]).await, redis::Value::Int(0));
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
    unknown(one(&store, claim(1, 2), within(500)).await, StoreErrorKind::Unavailable, false);
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
async fn a_user_without_permissions_is_told_so_and_not_named() {
    let server = Server::redis(&[]);
    server.command(&["ACL", "SETUSER", "s3cr3t_user", "on", ">s3cr3t", "~*", "+info"]).await;
    let url = format!("redis://s3cr3t_user:s3cr3t@127.0.0.1:{}", server.port);
    let error = RedisStore::connect(&url).await.unwrap_err();
    let shown = format!("{error:?} {:?}", std::error::Error::source(&error));
    assert!(shown.contains("denies the user") && !shown.contains("s3cr3t"), "{shown}");
}

#[tokio::test]
async fn a_wrong_password_is_denied_at_once() {
    let server = Server::redis(&["--requirepass", "right"]);
    for login in [":s3cr3t@", "nobody:s3cr3t@", ""] {
        let url = format!("redis://{login}127.0.0.1:{}", server.port);
        let text = refused(&RedisStore::new(&url).unwrap()).await;
        assert!(text.contains("refused user or password"), "{text}");
        assert!(!text.contains("s3cr3t"));
    }
    let url = format!("redis://:right@127.0.0.1:{}", server.port);
    RedisStore::connect(&url).await.unwrap();
}

/// As tokens of IAM: a new connection has a new one.
#[tokio::test]
async fn a_password_is_loaded_for_each_connection() {
    static LOADED: AtomicU32 = AtomicU32::new(0);
    let mut server =
        Server::redis(&["--user", "orders", "on", ">token-0", ">token-2", "~*", "+@all"]);
    let store = RedisStore::builder(&format!("redis://orders@127.0.0.1:{}", server.port))
        .password(|| async {
            match LOADED.fetch_add(1, Ordering::Relaxed) {
                1 => Err("s3cr3t"),
                n => Ok(format!("token-{n}")),
            }
        })
        .build()
        .unwrap();
    store.check().await.unwrap();
    server.kill();
    server.run();
    // The second password cannot be loaded, and the third is used.
    wrote(&store, claim(1, 1)).await;
    assert_eq!(LOADED.load(Ordering::Relaxed), 3);
}

/// Somebody has changed it since it was loaded. The function takes longer than a connection may, and longer than a call.
#[tokio::test]
async fn a_password_that_is_refused_is_loaded_once_more_and_loading_has_a_time_of_its_own() {
    static LOADED: AtomicU32 = AtomicU32::new(0);
    let server = Server::redis(&["--user", "orders", "on", ">new", "~*", "+@all"]);
    let url = format!("redis://orders@127.0.0.1:{}", server.port);
    let changed = RedisStore::builder(&url).password(async || {
        let is_first = LOADED.fetch_add(1, Ordering::Relaxed) == 0;
        Ok::<_, std::io::Error>(if is_first { "old" } else { "new" }.to_owned())
    });
    wrote(&changed.build().unwrap(), claim(1, 1)).await;
    assert_eq!(LOADED.load(Ordering::Relaxed), 2);
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
