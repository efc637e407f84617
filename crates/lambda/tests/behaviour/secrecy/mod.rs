//! The `Debug` and `Display` texts of public types contain nothing of a payload, a key or a result,
//! because users log them.
//!
//! `secrets` tests what the library itself logs.

mod calls;
mod expressions;
mod public_errors;
mod records;
mod shown;
