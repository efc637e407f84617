//! The idempotency protocol: what is kept for a key, who may claim it, and what a delivery is told.
//! Stores are written against this crate. Knows no AWS and no Lambda; the `lambda-idempotency` crate
//! adds those.
//!
//! | module | holds |
//! |---|---|
//! | [`admission`] | the protocol, as pure functions |
//! | [`record`], [`store`] | what is kept for a key, and what a store has to do |
//! | [`memory`] | a store in memory |
//! | [`policy`], [`failure`], [`outcome`] | what users choose, say and get |
//! | [`clock`] | time, as a parameter |
//! | [`key`] | the keys: the crate `lambda-idempotency-keys`, for who needs only its `Key` |

pub mod admission;
pub mod clock;
// For the engine, which runs users' code as well. Its form may change in any release.
#[doc(hidden)]
pub mod contained;
pub mod failure;
pub mod memory;
pub mod outcome;
pub mod policy;
pub mod record;
pub mod store;

#[doc(no_inline)]
pub use lambda_idempotency_keys as key;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
