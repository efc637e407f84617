//! Results in another form: compressed, encrypted, kept elsewhere.
//!
//! | file | holds |
//! |---|---|
//! | `forms`, `carried` | what goes into a store, and what comes out; what a record carries besides its result |
//! | `encrypted` | encrypted results: what is stored says nothing, and what was changed is not read |
//! | `offloaded`, `unreachable` | results that are kept elsewhere, and what happens while they cannot be reached |
//! | `bucket`, `support` | a bucket with faults; other helpers |
//! | `commits`, `operations` | transactions, and `run`, with such results |
//! | `secrecy` | that logs hold nothing of results and providers |
//! | `untouched` | writes that leave what is stored as it is |
//! | `conforming` | the conformance suite, for each way of storing them |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod bucket;
mod carried;
mod commits;
mod conforming;
mod encrypted;
mod forms;
mod offloaded;
mod operations;
mod secrecy;
mod support;
mod unreachable;
mod untouched;
