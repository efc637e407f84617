//! A function whose store cannot be used does not start, and says why without showing the URL.

use lambda_idempotency_tests::events::{batch_of, order};

use crate::support::{World, orders};

/// The last lines of a function whose variables are these.
async fn last_words(store: &str, table: &str) -> String {
    let function = orders().env("IDEMPOTENCY_TABLE", table).env("IDEMPOTENCY_STORE", store);
    let world = World::of(function).await;
    let invocation = world.invoke(&batch_of([order("o-1")])).await.unwrap();
    assert!(!invocation.result.is_response(), "{store}: {}", invocation.result);
    assert!(world.claims().is_empty() && world.placed().is_empty());
    world.lines().join("\n")
}

#[tokio::test]
async fn a_store_that_is_not_named_in_a_known_way_is_refused_with_its_remedy() {
    for (store, table, remedy) in [
        ("", "", "IDEMPOTENCY_TABLE"),
        ("mysql://u:s3cr3t@db/orders", "", "it has to begin with"),
        ("s3cr3t", "", "it has to begin with"),
        ("'postgres://u:s3cr3t@db/orders'", "", "it has to begin with"),
        ("postgres://u:s3cr3t@db:port/orders", "", "percent-encoded"),
        ("postgres://u:p@s3cr3t@db/orders", "", "percent-encoded"),
        ("postgres:u:s3cr3t@db/orders", "", "percent-encoded"),
        ("postgres://u:s3cr3t@db/orders?sslmode=s3cr3t", "", "percent-encoded"),
        ("postgres://u:s3cr3t@db/orders?s3cr3t=1", "", "percent-encoded"),
        ("postgres://u:s3cr3t@/orders", "", "percent-encoded"),
        ("rediss://u:s3cr3t@cache:port", "", "percent-encoded"),
        ("redis://u:s3#cr3t@cache", "", "percent-encoded"),
        ("redis://u:s3?cr3t@cache", "", "percent-encoded"),
        ("redis://u:6379/s3cr3t@cache", "", "percent-encoded"),
        ("redis:", "", "percent-encoded"),
        ("redis://u:s3cr3t@cache", "idempotency", "remove the one"),
        ("dynamodb:others", "idempotency", "remove the one"),
        ("dynamodb://orders", "", "dynamodb:TABLE"),
        ("dynamodb:", "", "dynamodb:TABLE"),
        ("dynamodb:s3cr3t orders", "", "dynamodb:TABLE"),
    ] {
        let words = last_words(store, table).await;
        assert!(words.contains(remedy) && words.contains("IDEMPOTENCY_STORE"), "{store}: {words}");
        for secret in ["s3cr3t", "cr3t@"] {
            assert!(!words.contains(secret), "{store}: {words}");
        }
    }
}

/// Other mistakes of a URL: a file that is not there, a store that this one only looks like. Nothing listens at
/// the ports.
#[tokio::test]
async fn a_store_that_cannot_be_used_is_named_with_its_remedy() {
    for (store, remedies) in [
        ("postgres://u:s3cr3t@db/orders?sslrootcert=/s3cr3t.pem", &["sslrootcert=FILE"][..]),
        ("postgres://u:s3cr3t@a1.dsql.eu-west-1.on.aws/postgres", &["Aurora DSQL"]),
        (
            "redis://u:s3cr3t@127.0.0.1:1/7",
            &["the Redis server cannot be used", "could not be reached: connection refused"],
        ),
        ("redis://u:s3cr3t@cache.invalid", &["could not be reached: its name was not found"]),
        (
            "postgres://u:s3cr3t@127.0.0.1:1/orders?sslmode=disable",
            &["the PostgreSQL server cannot be used", "check host, port", "refused"],
        ),
    ] {
        let words = last_words(store, "").await;
        assert!(remedies.iter().all(|remedy| words.contains(remedy)), "{store}: {words}");
        assert!(!words.contains("s3cr3t"), "{store}: {words}");
    }
}
