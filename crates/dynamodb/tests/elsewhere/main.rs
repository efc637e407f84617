//! The conformance suite with implementations of DynamoDB other than the embedded one, in each way of
//! writing. `cargo test` does not run this program, because it needs something that has to be installed:
//!
//! ```console
//! $ bash tests/run ministack           # installs MiniStack under target/ and runs the first
//! $ IDEMPOTENCY_TEST_ENDPOINT=aws cargo test -p lambda-idempotency-dynamodb --test elsewhere \
//!       the_named_endpoint_conforms
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[path = "../dynamodb/support/company.rs"]
mod company;
mod endpoint;
mod ministack;
mod suite;

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ministack_conforms() {
    let server = ministack::MiniStack::start("dynamodb");
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .endpoint_url(server.url())
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .build();
    suite::conforms(&Client::from_conf(config)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_named_endpoint_conforms() {
    suite::conforms(&endpoint::client().await).await;
}
