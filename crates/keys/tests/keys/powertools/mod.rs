//! Powertools keys, compared with recordings of the real libraries; see `record.py`.

mod collisions;
mod hostile;
mod key_specs;
mod recorded;
mod requests;
