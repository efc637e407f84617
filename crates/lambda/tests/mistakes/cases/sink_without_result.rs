//! Sinks that do not say whether they have taken the record, or are not async.

use lambda_idempotency::{
    Failure,
    source::{DivertedRecord, Sqs},
};

async fn silent(_: DivertedRecord) {}

fn not_async(_: DivertedRecord) -> Result<(), Failure> {
    Ok(())
}

fn main() {
    let _ = (Sqs::new().divert(silent), Sqs::new().divert(not_async));
}
