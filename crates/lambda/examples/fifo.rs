//! Bookings from a FIFO queue: those of one account (its message group) one after another, accounts
//! side by side.
//!
//! The library knows a FIFO queue by its ARN; there is nothing to set in the code. After a booking that
//! fails, the rest of its group goes back to the queue unstarted, and the other groups go on.
//!
//! **In AWS**: `ReportBatchItemFailures`; without it Lambda takes every answer for a success, and deletes
//! what failed. Of a group that waits behind a failure, each delivery counts: where a booking always
//! fails, those behind it can reach the dead-letter queue with it, untried. Set `maxReceiveCount` high, or
//! put such a booking aside (`Operation::divert`; `docs/examples/divert` sends it to a queue).
//!
//! **Here**: three bookings of one account, the first of which was sent twice, and one of another.
//!
//! ```console
//! $ cargo run -p lambda-idempotency-cli -- invoke crates/lambda/examples/fifo.json \
//!     --package lambda-idempotency --example fifo
//! ```

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation};
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
    // The queue recognises a copy for five minutes, the key for as long as it is kept: 24 hours.
    let book = Operation::new("book").key("bookingId");
    lambda_runtime::run(idempotency.sqs(book, book_it)?).await
}

async fn book_it(booking: Booking, call: Call) -> Result<(), Failure> {
    if booking.cents == 0 {
        return Ok(()); // nothing to book, which is a success: an error would hold up the account
    }
    // The account's balance is changed here. It can refuse a worker that comes too late, after another
    // one has taken over: this call's fence is higher than that of any earlier call for the booking.
    tracing::info!(key = call.key_hash(), fence = call.fence(), "booked");
    Ok(())
}
