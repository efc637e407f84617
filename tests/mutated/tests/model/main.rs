//! Explores the engine's own state machine and the protocol exhaustively: every order of every event, in small worlds.
//!
//! Each invocation is a real [`Machine`](machine::Machine), with its claims ahead, batches, queues, time budgets,
//! quarantine, renewals and timers. It asks the real functions of [`admission`](core::admission). The checker decides in
//! which order the store answers, handlers end, time passes, processes die and late writes are applied.
//!
//! ```text
//! cargo test -p lambda-idempotency-mutated --test model -- --nocapture        # part of the gate
//! MODEL=large cargo test --release -p lambda-idempotency-mutated --test model -- --nocapture
//! ```
//!
//! `rules.txt` lists the properties and the mutants, and `recorded.txt` the worlds with the number of their
//! states; [`documented`] compares both with the run.
//!
//! # The world
//!
//! * A [`world::Delivery`] is with its source, in an invocation, acknowledged, or failed permanently. A
//!   returned message is received again after its visibility timeout.
//! * A [`world::Invocation`] has a machine, calls of the store in flight, and running handlers.
//!   [`invocation`] carries out the machine's effects, as the driver does, and decides nothing.
//! * A [`world::Process`] has the state that its invocations share: a cache of completions ([`host`], in place of
//!   `engine::completed`), and a clock that may be ahead by the clock skew.
//! * A function that uses Powertools ([`powertools`]) writes to the same table, in some worlds.
//! * The [`store`] applies writes by `Write::applies`, and notes the properties that a write breaks.
//! * Time jumps from one instant at which something is due to the next: a machine's wake-up, the end of a
//!   call or handler, a message that becomes visible.
//!
//! The number of faults is limited ([`world::Faults`]). Between two faults, calls are answered in the
//! instant in which they are sent, and handlers end within the time that the world sets.
//!
//! # How a rule is left out
//!
//! The sources of the machine and of admission are compiled again, with a question at each rule that can be left out: the
//! build script of [this package](../../src/lib.rs) applies `rules.patch` to them. Nothing else differs from the code of
//! functions.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic here is a failing test"
)]

use lambda_idempotency_mutated::{Misjudged, core, keeps, leave_out, machine, misjudged};

/// Tests of one call each: a world in which the properties hold, or a rule without which one of them breaks.
macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident: $call:expr;)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            $call;
        }
    )*};
}

mod answers;
mod deaths;
mod documented;
mod explorer;
mod host;
mod invocation;
mod modes;
mod mutants;
mod outboxes;
mod powertools;
mod properties;
mod recovery;
mod run;
mod setup;
mod store;
mod time;
mod world;
mod worlds;
