//! Expressions and documents as a library reads them.

use std::{cell::Cell, fmt};

use crate::key::{
    DocumentError, ExpressionError, Functions, SelectionError,
    document::MOST_BYTES,
    jmespath::{
        Losses, Variant,
        ast::Node,
        evaluate::{self, Budget, Evaluation},
        functions::Sorted,
        parser::parse,
        read::read,
        value::Value,
    },
    reach, signs,
};

/// A compiled JMESPath expression, to be evaluated as the library of its dialect does.
#[derive(Clone)]
pub struct DialectExpression {
    text: String,
    pub(super) node: Node,
    variant: Variant,
}

/// A JSON text as the library of its dialect reads it.
#[derive(Clone)]
pub struct DialectDocument(pub(super) Value);

impl DialectExpression {
    pub(super) fn compile(variant: Variant, text: &str) -> Result<Self, ExpressionError> {
        let error = |(offset, reason)| ExpressionError::at(text, offset, reason);
        if variant == Variant::TypeScript && evaluate::is_inherited(text) {
            let reason = "TypeScript fails for an expression of this name; put it as `@.name`";
            return Err(error((0, reason.to_owned())));
        }
        signs::check_size(text).map_err(error)?;
        let node = parse(variant, text, &Functions::standard()).map_err(error)?;
        Ok(Self { text: text.to_owned(), node, variant })
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it selects the same from every record: `'orderId'` is a text, `orderId` a field.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        reach::is_constant(&self.node)
    }

    /// As [`Expression::few_values`](crate::key::Expression::few_values).
    #[must_use]
    pub fn few_values(&self) -> Option<&'static str> {
        reach::few_values(&self.node)
    }

    /// As [`Expression::selects`](crate::key::Expression::selects).
    #[must_use]
    pub fn selects(&self, member: &str) -> bool {
        reach::selects(&self.node, member)
    }

    pub(super) fn evaluate(
        &self,
        document: &DialectDocument,
        losses: &Losses,
    ) -> Result<Value, SelectionError> {
        let room = Cell::new(MOST_BYTES);
        let sorted = Sorted::default();
        let evaluation = Evaluation {
            variant: self.variant,
            losses,
            sorted,
            room,
            budget: Budget::default(),
            looks: None,
            absences: None,
        };
        let mut selected = evaluation.run(&self.node, &document.0)?;
        if !evaluation.sorted.is_empty() {
            // TypeScript first looks whether there is a key, and so meets the event sorted.
            evaluation.room.set(MOST_BYTES);
            evaluation.budget.renew();
            selected = evaluation.run(&self.node, &document.0)?;
        }
        Ok(selected)
    }
}

impl fmt::Debug for DialectExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DialectExpression({:?})", self.text)
    }
}

impl DialectDocument {
    pub(super) fn read(variant: Variant, json: &str) -> Result<Self, DocumentError> {
        read(variant, json).map(Self)
    }
}

/// Says nothing of what it holds: that is for no log.
impl fmt::Debug for DialectDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DialectDocument").finish_non_exhaustive()
    }
}
