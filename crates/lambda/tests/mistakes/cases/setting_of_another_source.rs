//! Settings that a source does not have.

use lambda_idempotency::source::{KeepOrder, Pipe, Sqs};

fn main() {
    let _ = Sqs::new().topic("orders");
    let _ = Pipe::of(Sqs::new().order(KeepOrder::Key));
}
