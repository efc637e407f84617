//! A sink that does not say whether it has taken the record.

use lambda_idempotency::source::{DivertedRecord, Sqs};

async fn sink(_: DivertedRecord) {}

fn main() {
    let _ = Sqs::new().divert(sink);
}
