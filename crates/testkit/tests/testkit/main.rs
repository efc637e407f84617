//! The conformance suites on the memory store and on broken stores, and the faults that tests inject.

mod browsing;
mod effects;
mod faults;
mod memory_store;
mod scenario_list;
mod tcp;
