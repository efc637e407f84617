//! The dialects, against what the real libraries were recorded to do; see `record.py`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod hostile;
mod lossy;
mod recipes;
mod recorded;
mod requests;
