//! The parser and the evaluator, with the variants of other libraries.
//!
//! There is one evaluator for all variants, so that the rules of when two numbers are equal or a
//! field is missing are written once. `lambda-idempotency-powertools` makes its keys with this
//! module.

use std::{collections::BTreeMap, fmt};

pub use crate::jmespath::{Collisions, Variant};
use crate::{
    DocumentError, ExpressionError, Selection, SelectionError, fallback,
    jmespath::{
        ast::Node,
        evaluate::Evaluation,
        fields,
        limits::{self, MOST_BYTES},
        numbers,
        parser::parse,
        read::read,
        state::State,
        value::Value,
        write::{Layout, TooLong, write},
    },
    missing,
    parts::{Optional, check},
    reach,
};

/// A compiled JMESPath expression with the semantics of a variant.
#[derive(Clone)]
pub struct VariantExpression {
    text: String,
    node: Node,
    variant: Variant,
}

/// A JSON text, parsed as a variant parses it.
#[derive(Clone)]
pub struct VariantDocument(Value);

/// The value that an expression selected, not yet checked to be a usable key.
#[derive(Clone)]
pub struct Selected {
    value: Value,
    variant: Variant,
}

impl VariantExpression {
    /// Compiles an expression with the functions of the variant.
    ///
    /// # Errors
    /// The first mistake, with its offset.
    pub fn compile(variant: Variant, text: &str) -> Result<Self, ExpressionError> {
        let error = |(offset, reason)| ExpressionError::at(text, offset, reason);
        if variant == Variant::TypeScript && fields::is_inherited(text) {
            let reason = "Powertools for TypeScript fails for an expression of this name; write `@.name` instead";
            return Err(error((0, reason.to_owned())));
        }
        limits::check_size(text).map_err(error)?;
        let node = parse(variant, text, &BTreeMap::new()).map_err(error)?;
        Ok(Self { text: text.to_owned(), node, variant })
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it selects the same value from every record.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        reach::is_constant(&self.node)
    }

    /// As [`Expression::few_values`](crate::Expression::few_values).
    #[must_use]
    pub fn few_values(&self) -> Option<&'static str> {
        reach::few_values(&self.node)
    }

    /// As [`Expression::has_fallback`](crate::Expression::has_fallback).
    #[must_use]
    pub fn has_fallback(&self) -> bool {
        fallback::is_in(&self.node)
    }

    /// As [`Expression::selects`](crate::Expression::selects).
    #[must_use]
    pub fn selects(&self, member: &str) -> bool {
        reach::selects(&self.node, member)
    }

    /// The value that it selects. Records in `collisions` how distinct documents could have the
    /// same value.
    ///
    /// # Errors
    /// The variant itself fails for this document.
    pub fn evaluate(
        &self,
        document: &VariantDocument,
        collisions: &Collisions,
    ) -> Result<Selected, SelectionError> {
        let evaluation = Evaluation { state: State::new(self.variant, collisions), absences: None };
        let mut value = evaluation.run(&self.node, &document.0)?;
        if !evaluation.state.sorted.is_empty() {
            // TypeScript evaluates once to check that there is a key, which sorts lists of the
            // event in place. The second evaluation sees them sorted.
            evaluation.state.room.set(MOST_BYTES);
            evaluation.state.budget.renew();
            value = evaluation.run(&self.node, &document.0)?;
        }
        Ok(Selected { value, variant: self.variant })
    }

    /// Checks that every part that it lists is present.
    ///
    /// # Errors
    /// A part is missing or empty.
    pub fn check(&self, selected: &Selected) -> Result<(), SelectionError> {
        check(&self.node, &selected.value, &Optional::default())
    }
}

impl fmt::Debug for VariantExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VariantExpression({:?})", self.text)
    }
}

impl VariantDocument {
    /// Parses a JSON text as the variant does.
    ///
    /// # Errors
    /// The variant cannot parse it, or it is too large or too deeply nested.
    pub fn read(variant: Variant, json: &str) -> Result<Self, DocumentError> {
        read(variant, json).map(Self)
    }

    /// The whole document.
    #[must_use]
    pub fn whole(&self, variant: Variant) -> Selected {
        Selected { value: self.0.clone(), variant }
    }
}

/// Shows no content, which must not be logged.
impl fmt::Debug for VariantDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VariantDocument").finish_non_exhaustive()
    }
}

impl Selected {
    /// Whether it is `null` or undefined.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        matches!(self.value, Value::Null | Value::Undefined)
    }

    /// Whether the variant treats it as a missing key.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self.variant {
            Variant::Standard => self.is_nothing(),
            Variant::Python => missing::is_missing_to_python(&self.value),
            Variant::TypeScript => missing::is_missing_to_typescript(&self.value),
        }
    }

    /// Checks that the value as a whole is present and not empty.
    ///
    /// # Errors
    /// It is missing or empty.
    pub fn check(&self) -> Result<(), SelectionError> {
        check(&Node::Current, &self.value, &Optional::default())
    }

    /// The text that the variant hashes.
    ///
    /// # Errors
    /// It is too long, or undefined.
    pub fn text(&self, collisions: &Collisions) -> Result<String, SelectionError> {
        let text = write(Layout::hashed(self.variant), &self.value, collisions);
        text.map_err(|TooLong| SelectionError::TooLong)?.ok_or(SelectionError::Missing)
    }
}

impl Selection {
    /// The selection whose bytes are the text that a variant hashes.
    #[doc(hidden)]
    #[must_use]
    pub fn of_text(text: String) -> Self {
        Self(text.into_bytes())
    }
}

/// Trims what JavaScript treats as white space.
#[must_use]
pub fn trim_as_javascript(text: &str) -> &str {
    text.trim_matches(numbers::is_javascript_space)
}
