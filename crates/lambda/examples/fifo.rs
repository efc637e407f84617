//! Bookings from a FIFO queue: those of one account (its message group) in order, different
//! accounts concurrently.
//!
//! The library recognises a FIFO queue by its ARN; the code needs no setting. After a booking that
//! fails, the rest of its group returns to the queue without being started, and the other groups
//! continue.
//!
//! **In AWS**: set `ReportBatchItemFailures`; without it, Lambda treats every response as a success
//! and deletes failed messages. The messages behind a failure are received each time, too: if a
//! booking always fails, those behind it can reach the dead-letter queue without an attempt. Set
//! `maxReceiveCount` to 15, or divert such a booking (`Sqs::divert`; `docs/examples/divert`
//! sends it to a queue). `docs/templates/sns-fifo-to-sqs-fifo.yaml` deploys it behind an SNS FIFO topic.
//!
//! **Here**: three bookings of one account, the first of which was sent twice, and one booking of
//! another account.
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke crates/lambda/examples/fifo.json \
//!     --example fifo
//! ```

use std::time::Duration;

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, source::Sqs};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
struct Booking {
    cents: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    // The queue recognises a copy for five minutes, the key for its retention: 4 days in the queue, 14 in the
    // dead-letter queue, and 4 again if the message is moved back.
    let book = Operation::new("book").key("bookingId").retention(Duration::from_hours(24 * 22));
    lambda_runtime::run(idempotency.on(Sqs::new(), &book, book_it)?).await
}

async fn book_it(booking: Booking, call: Call) -> Result<(), Failure> {
    if booking.cents == 0 {
        return Ok(()); // nothing to book is a success: an error would block the account
    }
    // Change the account's balance here. Store the fence with it, and refuse a lower one: a call's
    // fence is higher than that of any earlier call for the booking, so a worker that was taken
    // over is refused.
    tracing::info!(key = call.key_hash(), fence = call.fence(), "booked");
    Ok(())
}
