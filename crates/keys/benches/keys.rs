//! What a key costs, against parsing the record twice:
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-core --bench keys
//! ```

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

mod cases;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use lambda_idempotency_keys::{Document, Expression, FieldSet, Scope};

fn keys(c: &mut Criterion) {
    c.bench_function("yardstick: serde_json parses the record twice", |b| {
        b.iter(cases::parse_twice)
    });
    for (name, text, expressions) in cases::CASES {
        let prepared = cases::prepare(expressions);
        c.bench_function(name, |b| b.iter(|| cases::extract(black_box(text), &prepared)));
    }
}

/// A key of one field, with the payload read as far as the key needs it, and as a whole.
fn read(c: &mut Criterion) {
    let expression = Expression::compile("orderId").unwrap();
    let reads = FieldSet::of([&expression]);
    let scope = Scope { operation: "place-order", tenant: None };
    for (name, payload) in cases::payloads() {
        let key = |document| scope.key(&expression.select(&document).unwrap());
        c.bench_function(&format!("read in part: {name}"), |b| {
            b.iter(|| key(Document::read(black_box(&payload), &reads).unwrap()))
        });
        c.bench_function(&format!("read as a whole: {name}"), |b| {
            b.iter(|| key(Document::parse(black_box(&payload)).unwrap()))
        });
    }
}

criterion_group!(benches, keys, read);
criterion_main!(benches);
