//! The `Debug` and `Display` texts of public types contain nothing of a payload, a key or a result,
//! because users log them.
//!
//! `behaviour/secrets.rs` tests what the library itself logs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod calls;
mod expressions;
mod public_errors;
mod records;
mod shown;
