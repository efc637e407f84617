//! The cases of `../keys.rs`, as instructions counted by Callgrind.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark")]

#[path = "../cases/mod.rs"]
mod cases;

use std::hint::black_box;

use cases::{CASES, Prepared};
use gungraun::{library_benchmark, library_benchmark_group, main};

/// What happens once happens here.
fn prepared(case: usize) -> (&'static str, Prepared) {
    let (_, text, expressions) = CASES[case];
    let prepared = cases::prepare(expressions);
    drop(cases::extract(text, &prepared));
    (text, prepared)
}

#[library_benchmark]
fn yardstick() {
    drop(black_box(cases::parse_twice()));
}

#[library_benchmark]
#[benches::case(iter = 0..CASES.len(), setup = prepared, teardown = drop)]
fn key((text, prepared): (&'static str, Prepared)) -> Prepared {
    drop(black_box(cases::extract(black_box(text), &prepared)));
    prepared
}

// Valgrind has no instructions for SHA-256, as processors have: this is what remains without it.
#[library_benchmark]
#[benches::case(iter = 0..CASES.len(), setup = prepared, teardown = drop)]
fn selection((text, prepared): (&'static str, Prepared)) -> Prepared {
    drop(black_box(cases::select(black_box(text), &prepared)));
    prepared
}

library_benchmark_group!(name = keys, benchmarks = [yardstick, key, selection]);
main!(library_benchmark_groups = keys);
