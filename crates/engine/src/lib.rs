//! The batch engine: claims the keys of a batch in a store, runs the handlers, and settles what they
//! return. Knows no AWS and no Lambda; the `lambda-idempotency` crate adds those, and is what functions
//! use.
//!
//! **This API is for the crates of this project and is not stable**: any release may change it. What
//! functions need of it, `lambda-idempotency` exports.
//!
//! | module | holds |
//! |---|---|
//! | [`batch`] | the engine: claim, run, settle, for a whole batch |
//! | [`machine`] | what decides in it: a state machine without I/O |
//! | [`completed`] | keys that were seen completed, which the invocations of one process share |
//! | [`call`], [`delivered`] | what a handler gets besides the payload: its call, and the rest of its record |
//! | [`free`] | making the key of finished work new again |
//! | [`steps`] | parts of a handler's work that are kept between attempts |
//! | [`observe`] | reports of what happened |
//!
//! The rules it follows are those of [`lambda_idempotency_core::admission`].

pub mod batch;
pub mod call;
pub mod completed;
pub mod delivered;
mod delivery;
mod driver;
pub mod free;
pub mod machine;
pub mod observe;
mod running;
pub mod steps;
mod surroundings;
mod trace_context;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
