//! A setting of a source on an operation.

use lambda_idempotency::Operation;

fn main() {
    let _ = Operation::new("place-order").queue("orders");
}
