#![no_main]

#[allow(dead_code, reason = "each target uses a part of the bodies")]
#[path = "../../crates/keys/tests/keys/bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::powertools_bytes(bytes));
