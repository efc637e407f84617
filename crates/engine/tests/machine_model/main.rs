//! Explores the engine's own state machine exhaustively: every order of every event, in small worlds.
//!
//! [`tests/model`](../model/main.rs) explores the protocol, with a worker of its own that follows the
//! engine's documentation. Here **the worker is the engine**: each invocation is a real
//! [`Machine`](machine::Machine), with its claims ahead, batches, queues, budgets, quarantine, renewals and
//! timers. The checker decides in which order the store answers, handlers end, time passes, processes
//! die and late writes land.
//!
//! ```text
//! cargo test -p lambda-idempotency-engine --test machine_model -- --nocapture        # part of the gate
//! MODEL=large cargo test --release -p lambda-idempotency-engine --test machine_model -- --nocapture
//! ```
//!
//! `docs/model.md` lists the worlds with the number of their states, the properties and the mutants;
//! [`documented`] compares its tables with what runs.
//!
//! # The world
//!
//! * A [`world::Delivery`] is with its source, in an invocation, acknowledged, or failed permanently. What
//!   is returned comes again when its visibility timeout is over.
//! * An [`world::Invocation`] has a machine, the calls of the store that are on their way, and the handlers that
//!   run. [`invocation`] does what the machine says, as the driver does, and decides nothing.
//! * A [`world::Process`] has what its invocations share: who leads a key, and what was seen completed
//!   ([`host`], in place of `engine::process`, which `tests/shuttle` checks), and a clock that may be ahead by
//!   the clock skew.
//! * The [`store`] applies writes by `Write::applies`, and notes which rules a write breaks.
//! * Time jumps from one instant at which something is due to the next: a machine's wake, the end of a
//!   call or handler, a message that becomes visible.
//!
//! Faults are budgeted ([`world::Faults`]). Between two faults calls are answered within the instant in which they
//! are sent, and handlers end after the time that the world gives them.
//!
//! # How a rule is left out
//!
//! The machine's sources are compiled once more here, beside a [`rules`] that can say no to one rule.
//! Nothing else differs from what functions run.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic here is a failing test"
)]

#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the engine's own sources, not all of which are needed here"
)]
#[path = "../../src/machine/mod.rs"]
mod machine;
#[path = "../../src/unanswered.rs"]
mod unanswered;

/// What the machine takes from the engine.
mod batch {
    pub(crate) use lambda_idempotency_engine::batch::{AfterFailure, Returned};
}

mod documented;
mod explorer;
mod host;
mod invocation;
mod mutants;
mod properties;
mod recovery;
mod rules;
mod run;
mod setup;
mod store;
mod time;
mod world;
mod worlds;
