//! (docs to come)
mod actions;
mod canonical;
mod caught;
mod configurations;
mod explorer;
mod mutants;
mod packed;
mod properties;
mod protocol;
mod run;
mod setup;
mod state;
mod step;
mod store;
mod witness;
mod worker;
