//! Counts the instructions of the library's parts with Valgrind's Callgrind, and compares them with
//! `tests/counts/recorded.tsv`. Unlike times, they are nearly the same on each run, however busy the machine is.
//!
//! ```console
//! $ bash tests/run counts                                        # fails if a part takes 3 % more
//! $ cargo run --release -p lambda-idempotency-counts -- record   # after a change that is meant
//! $ cargo run --release -p lambda-idempotency-counts -- parts    # where those of one record go
//! ```
//!
//! With `--features dynamodb`, it counts calls of the DynamoDB store, and whole functions over it and by hand, whose requests
//! a connection without a server answers. It then has `recorded-dynamodb.tsv`.
//!
//! The program starts itself in Valgrind, which counts between the begin and the end of the function
//! [`counted`](cases::counted) and writes a file for each of its calls. What is counted has run once before.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "it measures; what it sets up is known to be valid"
)]

#[cfg(feature = "dynamodb")]
mod by_hand;
mod cases;
#[cfg(not(feature = "dynamodb"))]
mod delivering;
#[cfg(not(feature = "dynamodb"))]
mod extracting;
mod invoking;
mod parts;
mod recorded;
mod still;
#[cfg(feature = "dynamodb")]
mod storing;
mod valgrind;
#[cfg(feature = "dynamodb")]
mod ways;

use std::error::Error;
use std::process::ExitCode;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<ExitCode> {
    let argument = std::env::args().nth(1).unwrap_or_default();
    match &*argument {
        "run" => cases::run(),
        "names" => cases::all().iter().for_each(|case| println!("{}", case.name)),
        "record" => {
            recorded::write(&valgrind::count()?)?;
            recorded::write_parts(&parts::table(&valgrind::dumps()?))?;
        }
        "parts" => print!("{}", parts::table(&valgrind::dumps()?)),
        "" => return recorded::compare(&valgrind::count()?),
        _ => return Err(format!("`{argument}` is not known: `record`, `parts` or nothing").into()),
    }
    Ok(ExitCode::SUCCESS)
}
