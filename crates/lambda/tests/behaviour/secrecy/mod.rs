//! What `secrets` is made of, and values that no delivery shows: none contains a canary.
//!
//! Requests of HTTP have their own test in `http/secrets.rs`.

mod labels;
pub(crate) mod planted;
mod public_errors;
mod values;
pub(crate) mod watch;
