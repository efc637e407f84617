//! How many allocations the engine makes for a record: one that is fresh, a copy in the same batch,
//! a duplicate that the store knows, and one that this process remembers.
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-engine --bench allocations
//! ```
//!
//! The counts are exact, and the same on every run but for the maps of the store in memory, whose
//! growth is in them. What the records are made of (keys, ids, jobs) is made before. `tests/allocations.rs`
//! holds the counts to limits.

#![allow(missing_docs, reason = "a benchmark")]

mod cases;

use cases::{CASES, Counts, SIZES};

fn main() {
    println!("allocations (bytes) per record, in a batch of");
    println!("{:<22}{:>15}{:>15}{:>15}{:>15}", "", 1, 10, 100, 1000);
    for case in CASES {
        let counts = SIZES.map(|records| each(&case.count(records), records));
        println!("{:<22}{}", case.name, counts.map(|count| format!("{count:>15}")).concat());
    }
}

fn each(counts: &Counts, records: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let each = |count: usize| count as f64 / records as f64;
    format!("{:.1} ({:.0})", each(counts.allocations), each(counts.bytes))
}
