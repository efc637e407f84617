//! The idempotency protocol: what a store keeps for a key, when a key can be claimed, and the
//! outcome of a delivery. Stores are written against this crate. It does not depend on AWS or
//! Lambda; the `lambda-idempotency` crate adds those.
//!
//! | module | holds |
//! |---|---|
//! | [`admission`] | the protocol, as pure functions |
//! | [`record`], [`store`] | what a store keeps for a key, the contract of a store, and what some stores can do besides |
//! | [`effects`] | what some stores commit with a completion: the effects of its handler |
//! | [`outbox`] | messages that are stored with a completion and sent after it, and the contract of a sender |
//! | [`browse`] | listing the records of a store, for people who operate it |
//! | [`memory`] | a store in memory |
//! | [`retry`], [`request_slots`], [`settings`] | what stores have in common: requests that are repeated, how many are on their way, and what builders set |
//! | [`contained`] | calls of users' code, whose panics and hangs end nothing else |
//! | [`sweep`] | reading page by page what workers have left in a store |
//! | [`together`] | a future that several calls of a store drive together |
//! | [`tls`] | encrypted connections of stores, with the feature `tls` |
//! | [`policy`], [`failure`], [`outcome`] | what users configure, return and receive |
//! | [`clock`] | time, as a parameter, so that tests control it |
//! | [`key`] | `Key`, re-exported from the crate `lambda-idempotency-keys` |

pub mod admission;
pub mod browse;
pub mod clock;
pub mod contained;
pub mod effects;
pub mod failure;
pub mod memory;
pub mod outbox;
pub mod outcome;
pub mod policy;
pub mod record;
pub mod request_slots;
pub mod retry;
pub mod settings;
pub mod store;
pub mod sweep;
pub mod tls;
pub mod together;

#[doc(no_inline)]
pub use lambda_idempotency_keys as key;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
