//! Runs a real function under every fault that Lambda and its store can produce, and audits what it did.
//!
//! [`run`] starts several processes of the scripted orders function
//! (`tests/src/bin/scripted_orders.rs`) over the Lambda Runtime API of [`lambda_idempotency_local`]
//! and delivers messages of a source to them in which orders repeat. It injects faults chosen by a seed:
//! processes are killed and stopped, handlers fail and overrun, the store throttles, fails after it
//! applied a write, closes connections and becomes unavailable, clocks differ. When every message is
//! acknowledged or dead-lettered, it compares three independent records of the run: the *effect ledger*
//! that the processes wrote, the *records* in the store, and the answers to the *queue*.
//!
//! ```no_run
//! use lambda_idempotency_chaos::{Settings, run};
//!
//! # async fn example() -> Result<(), lambda_idempotency_chaos::Error> {
//! let report = run(&Settings { deliveries: 5000, ..Settings::new("target/debug/scripted_orders") }, |_| {}).await?;
//! println!("{report}");
//! assert!(report.findings.violations.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `settings`, `kinds` | the settings of a run |
//! | `schedule`, `plan`, `store_faults` | the orders and faults of a run, which follow from the settings with the seed |
//! | `drive`, `processes`, `injector` | deliver the messages and inject the faults |
//! | `ledger`, `history` | record what happened |
//! | `audit`, `report` | compare that with what the documentation guarantees |
//! | `evidence` | the same audit of a run in an AWS account, from what is found there |
//! | `store` | the store of the function, and what is in it |
//! | `queues` | the sources that deliver the messages |
//! | `template`, `vary` | the messages of a user's function |
//!
//! The **schedule** is repeatable: the same settings give the same orders, copies, scripts,
//! signals and faults of the store ([`Report::schedule`] is its digest). The **interleaving** is not,
//! because real processes run on a real machine. So a violation is reported with the whole
//! history of its order, and a seed repeats the schedule, not the run.
// This crate runs real processes in real time, so it reads the real clock.
#![allow(clippy::disallowed_methods)]

mod audit;
mod drive;
mod error;
mod evidence;
mod findings;
mod history;
mod injector;
mod kinds;
mod ledger;
mod plan;
mod processes;
mod queues;
mod random;
mod report;
mod schedule;
mod settings;
mod store;
mod store_faults;
mod template;
mod vary;

pub use drive::run;
pub use error::Error;
pub use evidence::{Ended, Evidence, EvidenceMessage, EvidenceOrder, Observed, What};
pub use findings::{Cause, Findings, Violation};
pub use history::Offence;
pub use kinds::{FaultKind, Mode, Origin};
pub use report::Report;
pub use settings::Settings;
pub use template::Template;
