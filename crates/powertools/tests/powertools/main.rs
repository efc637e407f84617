//! The keys of Powertools, against what the real libraries were recorded to do; see `record.py`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod collisions;
mod hostile;
mod key_specs;
mod recorded;
mod requests;
