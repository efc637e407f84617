//! Empty: Cargo wants a library beside the benchmark.
