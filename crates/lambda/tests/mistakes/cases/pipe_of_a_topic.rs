//! A source from which no pipe delivers.

use lambda_idempotency::source::{Pipe, Sns};

fn main() {
    let _ = Pipe::of(Sns::new());
}
