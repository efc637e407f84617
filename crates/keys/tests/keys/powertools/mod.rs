//! Powertools keys, compared with recordings of the real libraries; see `record.py`.

mod collisions;
mod hostile;
mod key_specs;
mod recorded;
mod requests;

use lambda_idempotency_keys::{SelectionError, powertools::PowertoolsKeys};

use crate::bodies::{made, selector};

/// What an expression selects from a document, as it is hashed.
fn select(
    powertools: &PowertoolsKeys,
    expression: &str,
    json: &str,
) -> Result<String, SelectionError> {
    let (_, selection) = made(&selector(powertools, expression).unwrap(), json).unwrap()?;
    Ok(String::from_utf8(selection.canonical_bytes().to_vec()).unwrap())
}
