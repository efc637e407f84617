//! Runs a real function under every fault that Lambda and DynamoDB can produce, and audits what it did.
//!
//! [`run`] starts several processes of the scripted orders function
//! (`tests/src/bin/scripted_orders.rs`) over the Lambda Runtime API of [`lambda_idempotency_local`],
//! delivers batches of a queue to them in which the same orders come again and again, and lets go wrong what a seed says: processes are killed and stopped, handlers
//! fail and overrun, the store throttles, lies about what it did, hangs up and goes away, clocks
//! differ. When every message is acknowledged or dead-lettered it compares three accounts of what
//! happened, which cannot know of each other: the *effect ledger* that the processes wrote, the
//! *records* in the store, and what the *queue* was told.
//!
//! ```no_run
//! use lambda_idempotency_chaos::{Settings, run};
//!
//! # async fn example() -> Result<(), lambda_idempotency_chaos::Error> {
//! let report = run(&Settings { deliveries: 5000, ..Settings::new("target/debug/scripted_orders") }, |_| {}).await?;
//! println!("{report}");
//! assert!(report.violations.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! | file | what it is about |
//! |---|---|
//! | `settings`, `fault` | what a run is made of |
//! | `schedule`, `plan`, `store_faults` | what is going to happen: it follows from the settings, seed included |
//! | `drive`, `injector` | making it happen |
//! | `ledger`, `history` | what did happen |
//! | `audit`, `report` | whether that is what the documentation admits |
//!
//! **What is repeatable** is the schedule: the same settings give the same orders, copies, scripts,
//! signals and episodes of the store ([`Report::schedule`] is its digest). What is not is the
//! interleaving: real processes run on a real machine. So a violation is reported with the whole
//! history of its order, and a seed is a place to look again, not a proof to replay.
// This crate imitates the outside world: it reads the real clock.
#![allow(clippy::disallowed_methods)]

mod audit;
mod drive;
mod fault;
mod findings;
mod history;
mod injector;
mod ledger;
mod plan;
mod random;
mod report;
mod schedule;
mod settings;
mod store_faults;

pub use drive::{Progress, run};
pub use fault::FaultKind;
pub use findings::{Cause, Violation};
pub use history::Offence;
pub use report::Report;
pub use settings::Settings;

use std::{io, path::PathBuf};

/// Why a run could not be made. What the function did wrong is in the [`Report`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The surroundings of the function failed.
    #[error(transparent)]
    Local(#[from] lambda_idempotency_local::Error),
    /// The ledger could not be written or read.
    #[error("cannot use the ledger {}: is the directory for temporary files writable?", path.display())]
    Ledger {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The ledger holds something else than the function's lines.
    #[error("cannot read a line of the ledger: `{0}`; is the binary the scripted orders function?")]
    LedgerLine(String),
}
