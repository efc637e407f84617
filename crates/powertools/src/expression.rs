//! Expressions and documents as a library reads them.

use lambda_idempotency_keys::{
    DocumentError, ExpressionError,
    internal::{VariantDocument, VariantExpression},
};

use super::Library;

/// A compiled JMESPath expression, to be evaluated as the library of its dialect does.
#[derive(Clone, Debug)]
pub struct DialectExpression(pub(super) VariantExpression);

/// A JSON text as the library of its dialect reads it. Its `Debug` shows nothing of what it holds.
#[derive(Clone, Debug)]
pub struct DialectDocument(pub(super) VariantDocument);

impl DialectExpression {
    pub(super) fn compile(library: Library, text: &str) -> Result<Self, ExpressionError> {
        VariantExpression::compile(library.into(), text).map(Self)
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it selects the same from every record: `'orderId'` is a text, `orderId` a field.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.0.is_constant()
    }

    /// As [`Expression::few_values`](lambda_idempotency_keys::Expression::few_values).
    #[must_use]
    pub fn few_values(&self) -> Option<&'static str> {
        self.0.few_values()
    }

    /// As [`Expression::selects`](lambda_idempotency_keys::Expression::selects).
    #[must_use]
    pub fn selects(&self, member: &str) -> bool {
        self.0.selects(member)
    }
}

impl DialectDocument {
    pub(super) fn read(library: Library, json: &str) -> Result<Self, DocumentError> {
        VariantDocument::read(library.into(), json).map(Self)
    }
}
