//! Powertools keys, compared with recordings of the real libraries; see `record.py`.

mod collisions;
mod hostile;
mod key_specs;
mod recorded;
mod requests;

use lambda_idempotency_keys::{SelectionError, powertools::PowertoolsKeys};

use crate::bodies::{made, selector};

/// The text that is hashed of what an expression selects from a document.
fn select(
    powertools: &PowertoolsKeys,
    expression: &str,
    json: &str,
) -> Result<String, SelectionError> {
    let (_, selection) = made(&selector(powertools, expression).unwrap(), json).unwrap()?;
    Ok(String::from_utf8(selection.canonical_bytes().to_vec()).unwrap())
}

/// `base64.b64decode`, which no recorded case asks this.
#[test]
fn python_skips_padding_where_no_group_can_end() {
    let decoded = select(&PowertoolsKeys::python("p"), "powertools_base64(@)", r#""YWJjZ===WJj""#);
    assert_eq!(decoded.as_deref(), Ok(r#""abcebc""#));
}
