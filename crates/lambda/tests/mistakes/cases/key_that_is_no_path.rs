//! A key that is not a path.

use lambda_idempotency::{Operation, source::Sqs};

fn main() {
    let _ = Operation::new("place-order").key(17);
    let _ = Sqs::new().key(["id", "tenant"]);
}
