//! Requests that are not sent, or refused, because of the credentials or the time of their signature.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::support::{Fault, Fixture, PlainVerdict, TABLE, claims, plain, soon, unknown};
use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials, error::CredentialsError, future},
};
use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    store::{Store, StoreErrorKind},
};
use lambda_idempotency_dynamodb::{DynamoDbStore, DynamoDbStoreBuilder};
use lambda_idempotency_testkit::clock::ManualClock;

/// Credentials that fail to load a number of times, as those of a role during an outage.
#[derive(Debug)]
struct Refreshed {
    failures: AtomicUsize,
    error: fn() -> CredentialsError,
}

impl ProvideCredentials for Refreshed {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures == 0 {
            return future::ProvideCredentials::ready(Ok(Credentials::new(
                "id", "secret", None, None, "test",
            )));
        }
        self.failures.store(failures - 1, Ordering::Relaxed);
        future::ProvideCredentials::ready(Err((self.error)()))
    }
}

/// A store whose credentials fail to load a number of times.
fn with_credentials(
    fixture: &Fixture,
    failures: usize,
    error: fn() -> CredentialsError,
) -> DynamoDbStoreBuilder {
    let provider = Refreshed { failures: failures.into(), error };
    let config = fixture.client.config().to_builder().credentials_provider(provider).build();
    DynamoDbStore::builder(aws_sdk_dynamodb::Client::from_conf(config), TABLE)
        .backoff(Duration::from_millis(1), Duration::from_millis(4))
}

#[tokio::test]
async fn credentials_that_fail_to_refresh_are_loaded_again() {
    let errors: [fn() -> CredentialsError; 2] = [
        || CredentialsError::provider_error("503 from STS"),
        || CredentialsError::provider_timed_out(Duration::from_secs(5)),
    ];
    for error in errors {
        for count in [1, 3] {
            let fixture = Fixture::start().await;
            let store = with_credentials(&fixture, 2, error).build().unwrap();
            for verdict in store.write(&claims(count), soon()).await {
                assert_eq!(plain(&verdict), PlainVerdict::Written);
            }
            assert_eq!(fixture.wire.operations().len(), 1, "nothing was sent without credentials");
        }
    }
}

/// In simulated time: loading fails at once, so only the pauses take any.
#[tokio::test]
async fn without_loaded_credentials_the_store_is_unavailable_and_nothing_was_applied() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = with_credentials(&fixture, usize::MAX, || CredentialsError::provider_error("503"));
    let store = store.clock(clock.clone()).build().unwrap();
    let call_deadline = clock.now().plus(Duration::from_millis(100));
    for verdict in clock.drive(store.write(&claims(3), call_deadline)).await {
        let error = unknown(verdict);
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(!error.may_have_applied(), "nothing was sent: {error}");
        assert!(error.to_string().contains("no usable AWS credentials"), "{error}");
    }
}

/// The next request is signed with the server's time, so it succeeds.
#[tokio::test]
async fn a_wrong_clock_costs_one_request() {
    let ahead = Duration::from_secs(600);
    for count in [1, 3] {
        let fixture = Fixture::start().await;
        fixture.wire.fault([Fault::Skewed(ahead)]);
        for verdict in fixture.store().write(&claims(count), soon()).await {
            assert_eq!(plain(&verdict), PlainVerdict::Written);
        }
        let [wrong, corrected] = fixture.wire.signed()[..] else { panic!("two requests") };
        let correction = corrected.duration_since(wrong).unwrap();
        assert!(correction.abs_diff(ahead) < Duration::from_secs(30), "{correction:?}");
    }
}
