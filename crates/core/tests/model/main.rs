//! Explores the protocol exhaustively: every order of every step, in small worlds.
//!
//! The checker ([`stateright`]) runs the very functions that production runs: `admit`,
//! `Held::write` and `Held::settled` decide, `Write::applies` is the store. Around them is a world
//! of workers, clocks, a network and a source that all misbehave as far as they may.
//!
//! ```text
//! cargo test -p lambda-idempotency-core --test model -- --nocapture               # a minute
//! MODEL=large cargo test --release -p lambda-idempotency-core --test model -- --nocapture
//! ```
//!
//! # The world
//!
//! * A **source** delivers each key several times, and again whatever comes back.
//! * **Workers** take a delivery, claim, run a handler that returns Ok or Err, renew, complete,
//!   remember, release, put back. They crash between any two steps and forget everything.
//! * A **network** loses requests and answers, and delivers writes late, twice, or after their
//!   sender has died. All of this is one fault: a write gets no answer, and a copy of it stays on
//!   its way, to land at any time or never. The sender tries again or gives up.
//! * **Clocks** differ by up to the skew allowance and step within it. No clock is kept in the
//!   state: each reading may be anything that is allowed at that time, which covers every way in
//!   which a clock can step. A worker *believes* that it holds a key if some such reading says so.
//! * The **server** sweeps expired records, by a clock of its own.
//!
//! A tick is a second; the allowance is one tick, a lease two, a renewed one three, the retention
//! three (or one, or six).
//!
//! # What is checked
//!
//! [`properties`] says it in a line each. Some are read off a state; the others concern one step,
//! so the step notes what it broke ([`state::Flaw`]). [`witness`] counts what happened on the way,
//! and each configuration names what it must have met: takeovers, replays, fenced completions,
//! lost answers resolved. A model in which nothing happens would have no flaws either.
//!
//! [`mutants`] are protocols with one mistake each, and [`caught`] asserts that each is found out
//! by the property that speaks of its mistake.
//!
//! # What keeps it small
//!
//! * [`configurations`] are many small worlds rather than one large one. Keys do not influence
//!   each other in the protocol, and a batch writes each member by itself: so most worlds have one
//!   key, and two have two, whose writes may land in any order, as in a batch.
//! * Workers and tokens are renamed in order of appearance ([`canonical`]).
//! * Records are [`packed`] into eight bytes, and nothing is lost by it.
//! * On a prompt network ([`setup::Network`]) only what races with others is in flight for long.
//!   Two configurations do without this.
//! * A late write that would change nothing need not arrive.
//!
//! # What is not modelled
//!
//! Fingerprints, outcomes (one text stands for all), records of other libraries (whose writes are
//! unconditional), and what a store does inside one write: the conformance suite is for that.

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
