//! Explores the protocol exhaustively: every order of every step, in small worlds.
//!
//! The checker ([`stateright`]) runs the very functions that production runs: `admit`,
//! `Held::write` and `Held::settled` decide, `Write::applies` is the store. Around them is a world
//! of workers, clocks, a network and a source that all misbehave as far as they may.
//!
//! ```text
//! cargo test -p lambda-idempotency-engine --test model -- --nocapture               # a minute
//! MODEL=large cargo test --release -p lambda-idempotency-engine --test model -- --nocapture
//! ```
//!
//! `docs/model.md` lists the configurations with the number of their states, the properties and the
//! mutants, and says what a fleet keeps that shares its table with Powertools. [`documented`] compares
//! its tables with what runs: a change here fails with the rows to be put there.
//!
//! # The world
//!
//! * A **source** delivers each key several times, and again whatever comes back; an ordered one
//!   from its checkpoint, also while an earlier delivery is still being worked on.
//! * **Workers** take a delivery, claim, run a handler that returns Ok or Err, renew, complete,
//!   fail permanently, release, undo, wait for a busy key, are stopped by a deadline. They crash between
//!   any two steps and forget everything.
//! * A **network** loses requests and answers, and delivers writes late, twice, or after their
//!   sender has died. All of this is one fault: a write gets no answer, and a copy of it stays on
//!   its way, to land at any time or never. The sender tries again or gives up.
//! * **Clocks** differ by up to the clock skew and step within it. No clock is kept in the
//!   state: each reading may be anything that is allowed at that time, which covers every way in
//!   which a clock can step. A worker *believes* that it holds a key if some such reading says so.
//! * The **server** sweeps expired records, by a clock of its own.
//! * Functions that use **Powertools** ([`powertools`]) write to the same table, in two worlds.
//!
//! A tick is a second; the allowance is one tick, a lease two, a renewed one two or three, the
//! retention three (or one, or six).
//!
//! # What is real, and what is copied
//!
//! What a record means and what to write is decided by the real functions. What they leave to the
//! engine is done by the model's worker as the engine is documented to do it, in as few steps as
//! possible: [`worker`] (when a handler starts), [`waiting`], [`ending`] (coalescing),
//! [`explorer`] (ordered groups and checkpoints), [`actions`] (what runs alone), [`sending`] (heartbeats that stop a handler, and
//! deadlines). [`protocol::Rule`] names these rules, and a mutant leaves out each. That the engine
//! keeps them is for its own tests to show.
//!
//! # What is checked
//!
//! [`properties`] says it in a line each. Some are read off a state; the others concern one step,
//! so the step notes what it broke ([`state::Flaw`]). [`witness`] counts what happened on the way,
//! and each configuration names what it must have met: takeovers, replays, fenced completions,
//! lost answers resolved. A model in which nothing happens would have no flaws either.
//!
//! [`mutants`] are protocols with one mistake each, and [`caught`] and [`rules`] assert that each is
//! found out by the property that speaks of its mistake. [`fleet`] asserts the same of the real
//! protocol where it must fail: beside writers that overwrite anything.
//!
//! # What keeps it small
//!
//! * [`configurations`] and [`rules`] are many small worlds rather than one large one. Keys do not
//!   influence each other in the protocol, and a batch writes each member by itself: so most worlds
//!   have one key, and four have two, whose writes may land in any order, as in a batch.
//! * Workers and tokens are renamed in order of appearance, and fences of the past too
//!   ([`canonical`]).
//! * Records are [`packed`] into eight bytes, and nothing is lost by it.
//! * On a prompt network ([`setup::Network`]) only what races with others is in flight for long.
//!   Two configurations do without this.
//! * A late write that would change nothing need not arrive.
//!
//! # What is not modelled
//!
//! Outcomes (one text stands for all), what the invocations of one process have in common (the local
//! cache, following each other), and what a store does inside one write: the conformance suite is for
//! that.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic here is a failing test"
)]

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
