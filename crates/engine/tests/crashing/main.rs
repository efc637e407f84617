//! Stops the engine at every await.
//!
//! The real engine runs with a store that can stop its caller before, between and after its writes, and
//! with handlers that stop at each of their awaits. Or the whole process is suspended, and continues after
//! its leases have expired, also beside the worker that took over. Records that remain are redelivered as
//! each kind of source does it, until the source has none left. Then the checks assert that no record is
//! lost or stuck, that no effect happened out of order, and that none happened twice unless a worker
//! stopped between the effect and its completion. Effects that are committed with their completion
//! happen once, wherever a worker stops. A step runs once, unless a worker stopped between its effect and
//! its record.
//!
//! A longer run has a hundred times as many samples (360,000 stories with 890,000 stops, in under
//! three minutes on two cores):
//!
//! ```console
//! $ CRASHING_TIMES=100 cargo test --release -p lambda-idempotency-engine --test crashing -- --nocapture
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `message`, `source` | the messages, and how their sources redeliver them |
//! | `stop` | where and how a worker stops |
//! | `worker`, `store` | one invocation, and its store |
//! | `log` | the checks; in `log/calls` those of calls of handlers |
//! | `story`, `sweep` | a story from the first delivery to the last; stories with every stop, every pair of stops, and samples |
//! | `stories` | the stories |
//! | `mutex` | stories and checks of its own: keys that only exclude each other |
//! | `caught` | that the checks find mistakes |

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod caught;
mod log;
mod message;
mod mutex;
mod source;
mod stop;
mod store;
mod stories;
mod story;
mod sweep;
mod worker;
