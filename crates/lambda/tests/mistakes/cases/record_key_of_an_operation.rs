//! A key in the record around the payload, which only a source has.

use lambda_idempotency::{Operation, keys::record};

fn main() {
    let _ = Operation::new("place-order").key(record("Sns.MessageId"));
}
