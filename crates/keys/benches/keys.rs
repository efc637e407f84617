//! What a key costs, against parsing the record twice:
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-core --bench keys
//! ```

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

mod cases;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};

fn keys(c: &mut Criterion) {
    c.bench_function("yardstick: serde_json parses the record twice", |b| {
        b.iter(cases::parse_twice)
    });
    for (name, text, expressions) in cases::CASES {
        let prepared = cases::prepare(expressions);
        c.bench_function(name, |b| b.iter(|| cases::extract(black_box(text), &prepared)));
    }
}

criterion_group!(benches, keys);
criterion_main!(benches);
