//! Expressions and documents with the semantics of Powertools.

use lambda_idempotency_keys::{
    DocumentError, ExpressionError,
    internal::{VariantDocument, VariantExpression},
};

use super::PowertoolsLanguage;

/// A compiled JMESPath expression, evaluated as Powertools evaluates it.
#[derive(Clone, Debug)]
pub struct PowertoolsExpression(pub(super) VariantExpression);

/// A JSON text, parsed as Powertools parses it. `Debug` does not show its content.
#[derive(Clone, Debug)]
pub struct PowertoolsDocument(pub(super) VariantDocument);

impl PowertoolsExpression {
    pub(super) fn compile(
        language: PowertoolsLanguage,
        text: &str,
    ) -> Result<Self, ExpressionError> {
        VariantExpression::compile(language.into(), text).map(Self)
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it selects the same value from every record: `'orderId'` is a text, `orderId` is a
    /// field.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.0.is_constant()
    }

    /// As [`Expression::few_values`](lambda_idempotency_keys::Expression::few_values).
    #[must_use]
    pub fn few_values(&self) -> Option<&'static str> {
        self.0.few_values()
    }

    /// As [`Expression::has_fallback`](lambda_idempotency_keys::Expression::has_fallback).
    #[must_use]
    pub fn has_fallback(&self) -> bool {
        self.0.has_fallback()
    }

    /// As [`Expression::selects`](lambda_idempotency_keys::Expression::selects).
    #[must_use]
    pub fn selects(&self, member: &str) -> bool {
        self.0.selects(member)
    }
}

impl PowertoolsDocument {
    pub(super) fn read(language: PowertoolsLanguage, json: &str) -> Result<Self, DocumentError> {
        VariantDocument::read(language.into(), json).map(Self)
    }
}
