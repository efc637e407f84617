//! Explores the protocol exhaustively: every order of every step, in small worlds.
//!
//! The checker ([`stateright`]) runs the functions that production runs: `admit`, `Held::write` and
//! `Held::settled` decide, `Write::applies` is the store. Around them is a world of workers, clocks, a
//! network and a source, each of which fails in every way that its configuration allows.
//!
//! ```text
//! cargo test -p lambda-idempotency-mutated --test model -- --nocapture               # a minute
//! MODEL=large cargo test --release -p lambda-idempotency-mutated --test model -- --nocapture
//! ```
//!
//! `docs/model.md` lists the properties, and says which guarantees a fleet keeps that shares its table with
//! Powertools. `recorded.txt` lists the configurations with the number of their states: [`documented`] compares
//! it with the run, and fails with the rows that it should have.
//!
//! # The world
//!
//! * A **source** delivers each key several times, and redelivers returned records.
//! * **Workers** take a delivery, claim, run a handler that returns Ok or Err, renew, complete,
//!   fail permanently, release, undo, wait for a busy key, and are stopped by a deadline. They crash
//!   between any two steps and lose all their state.
//! * A **network** loses requests and answers, and delivers writes late, twice, or after their
//!   sender has died. All of this is one fault: a write gets no answer, and a copy of it stays in
//!   flight, to be applied at any time or never. The sender tries again or gives up.
//! * **Clocks** differ by up to the clock skew and step within it. The state holds no clock:
//!   each reading may be anything that is allowed at that time, which covers every way in which a
//!   clock can step. A worker *believes* that it holds a key if an allowed reading says so.
//! * The **server** sweeps expired records, by its own clock.
//! * Functions that use **Powertools** ([`powertools`]) write to the same table, in two worlds.
//!
//! A tick is a second; the clock skew is one tick, a lease two, a renewed lease two or three, the
//! retention three (or one, or six).
//!
//! # Real code
//!
//! The real functions decide what a record means and what to write. The model's worker claims, runs and settles
//! in as few steps as possible: [`worker`] (when a handler starts), [`waiting`], [`sending`] (the end of a
//! lease, and deadlines). What the engine does with a batch (copies, order groups, quarantine, permanent failures)
//! is not here: the model of the engine, `machine_model`, runs its own state machine.
//!
//! # Properties and mutants
//!
//! [`properties`] describes each property in a line. Some are evaluated on a state; the others concern
//! one step, so the step notes the property that it broke ([`state::Flaw`]). [`witness`] counts events,
//! and each configuration names those that must occur: takeovers, replays, fenced completions, lost
//! answers that were resolved. Without this, a model in which nothing happens would pass.
//!
//! [`mutants`] are protocols with one mistake each, and [`caught`] and [`rules`] assert that each
//! breaks the property that its mistake concerns. [`fleet`] asserts the same of the real protocol beside
//! writers that overwrite any record.
//!
//! # Keeping the number of states small
//!
//! * [`configurations`] and [`rules`] are many small worlds rather than one large one. They have one key:
//!   keys do not influence each other in the protocol, and a batch writes each member separately.
//! * Workers and tokens are renamed in order of appearance, and so are fences of the past
//!   ([`canonical`]).
//! * Records are [`packed`] into eight bytes, without loss.
//! * On a prompt network ([`setup::Network`]) only writes that race with others stay in flight.
//!   Two configurations have a slow network.
//! * A late write that would change nothing is not delivered.
//!
//! # Not modelled
//!
//! Results (one text represents all), what the invocations of one process share (the cache, single
//! flight), and what a store does inside one write, which the conformance suite tests.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic here is a failing test"
)]

#[macro_use]
#[path = "../model_page/mod.rs"]
mod model_page;

mod actions;
mod canonical;
mod caught;
mod configurations;
mod documented;
mod ending;
mod explorer;
mod fleet;
mod mutants;
mod packed;
mod powertools;
mod properties;
mod protocol;
mod request;
mod rules;
mod run;
mod sending;
mod setup;
mod state;
mod step;
mod store;
mod waiting;
mod witness;
mod worker;
