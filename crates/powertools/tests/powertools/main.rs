//! Powertools keys, compared with recordings of the real libraries; see `record.py`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod collisions;
mod hostile;
mod key_specs;
mod recorded;
mod requests;
