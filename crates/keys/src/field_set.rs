//! The fields of a document that expressions read; the others are not parsed.

use std::sync::Arc;

use super::jmespath::wanted::Wanted;

/// The fields of a document that some expressions read. See
/// [`Document::read`](super::Document::read).
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression, FieldSet};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (key, amount) = (Expression::compile("order.id")?, Expression::compile("order.amount")?);
/// let reads = FieldSet::of([&key, &amount]);
/// // The photo is not copied, and its content has no effect.
/// let payload = r#"{"order":{"id":"o-1","amount":5},"photo":"iVBORw0KGgoAAAANSUhEUg"}"#;
/// let document = Document::read(payload, &reads)?;
/// assert_eq!(key.select(&document)?.canonical_bytes(), b"\"o-1\"");
/// assert_eq!(amount.select(&document)?.canonical_bytes(), b"5");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) document: Arc<Wanted>,
}
