//! The batch engine, by scenario, in simulated time.

mod claiming;
mod coalescing;
mod conflict;
mod crashing;
mod deadline;
mod order;
mod settling;
mod support;
