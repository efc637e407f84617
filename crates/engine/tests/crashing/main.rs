//! A crash at every await.
//!
//! The real engine, over a store that can stop its caller before, between and behind its writes,
//! calls handlers that stop at each of theirs. Or it stands still, and goes on when its leases are over:
//! all at once, or beside who has taken over. What is left is delivered again as each kind of source
//! does it, until that has forgotten everything. Then nothing is lost, nothing doubled except where a
//! worker stopped between an effect and its record, nothing out of order, nothing stuck.
//!
//! For a longer run, with a hundred times as many samples (360,000 stories with 890,000 stops, in under
//! three minutes on two cores):
//!
//! ```console
//! $ CRASHING_TIMES=100 cargo test --release -p lambda-idempotency-engine --test crashing -- --nocapture
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `message`, `source` | what is delivered, and how it comes again |
//! | `stop` | where and how a worker stops |
//! | `worker`, `store` | one invocation, and what it writes to |
//! | `log` | the checks |
//! | `story`, `sweep` | from the first delivery to the last; with every stop, pairs of them, samples |
//! | `queues`, `streams`, `wholes`, `choices`, `diverting` | the stories |
//! | `caught` | that the checks find what is wrong |

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod caught;
mod choices;
mod diverting;
mod log;
mod message;
mod queues;
mod source;
mod stop;
mod store;
mod story;
mod streams;
mod sweep;
mod wholes;
mod worker;
