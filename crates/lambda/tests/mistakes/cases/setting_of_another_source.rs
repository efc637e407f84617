//! Settings that a source does not have.

use lambda_idempotency::source::{Invoke, KeepOrder, Pipe, Scheduler, Sqs, S3};

fn main() {
    let _ = Sqs::new().topic("orders");
    // The payload is the record.
    let _ = (Invoke::new().whole_record(), S3::new().whole_record(), Scheduler::new().whole_record());
    let _ = Pipe::of(Sqs::new().order(KeepOrder::Key));
}
