//! Sends the messages that a worker stored before it died, where no delivery comes again: a function that a schedule
//! starts, for example once an hour.
//!
//! **In AWS**: it needs what the function has that publishes, and `dynamodb:Scan` on the table. It leaves records alone
//! that were claimed less than 15 minutes ago; `RELAY_MIN_AGE_SECONDS` sets another time. If it does not get through the
//! table before its deadline, its answer says so, and the next run begins anew: give it enough time.

use std::time::Duration;

use lambda_idempotency::{DynamoDbStore, clock::Timestamp, outbox::Relay};
use lambda_runtime::{Error, LambdaEvent, service_fn, tracing};
use senders::Senders;
use serde_json::{Value, json};

/// What is left of the time for the function's answer, in milliseconds.
const MARGIN: u64 = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let relay = Relay::new(DynamoDbStore::from_env().await?, Senders::from_env().await);
    let relay = match std::env::var("RELAY_MIN_AGE_SECONDS") {
        Ok(seconds) => relay.with_min_age(Duration::from_secs(seconds.parse()?)),
        Err(_) => relay,
    };
    let relay = &relay;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Value>| {
        let deadline = Timestamp::from_millis(event.context.deadline.saturating_sub(MARGIN));
        let relayed = relay.run(None, deadline).await?;
        if let Some(error) = &relayed.error {
            tracing::error!(unsent = relayed.unsent, %error, "messages could not be sent");
        }
        let is_whole = relayed.swept.is_complete;
        Ok::<_, Error>(json!({
            "examined": relayed.swept.examined, "sent": relayed.sent, "unsent": relayed.unsent, "whole": is_whole,
        }))
    }))
    .await
}
