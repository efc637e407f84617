//! The idempotency protocol: which delivery of an event does its work, and what the others are
//! told. Knows no AWS and no Lambda; the `lambda-idempotency` crate adds those.
//!
//! | module | holds |
//! |---|---|
//! | [`admission`] | the protocol, as pure functions |
//! | [`record`], [`store`] | what is kept for a key, and what a store has to do |
//! | [`memory`] | a store in memory |
//! | [`key`] | from an event to its key |
//! | [`producer`] | that key before the event is sent |
//! | [`batch`] | the engine: claim, run, settle, for a whole batch |
//! | [`process`] | what invocations of one process share |
//! | [`policy`], [`call`], [`failure`], [`outcome`] | what users choose, are told, say and get |
//! | [`delivered`] | what a call knows of its record besides the payload |
//! | [`clock`], [`observe`] | time and reports, as parameters |

pub mod admission;
pub mod batch;
pub mod call;
pub mod clock;
mod contained;
pub mod delivered;
pub mod failure;
pub mod key;
pub mod memory;
pub mod observe;
pub mod outcome;
pub mod policy;
pub mod process;
pub mod producer;
pub mod record;
pub mod store;
