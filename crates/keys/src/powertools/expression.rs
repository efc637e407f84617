//! Expressions and documents with the semantics of Powertools.

use std::{collections::BTreeMap, fmt};

use super::{PowertoolsLanguage, missing};
use crate::{
    DocumentError, ExpressionError, SelectionError, fallback,
    jmespath::{
        Collisions, Variant,
        ast::Node,
        evaluate::Evaluation,
        fields,
        limits::{self, MOST_BYTES},
        parser::parse,
        read::read,
        state::State,
        value::Value,
        write::{Layout, TooLong, write},
    },
    parts::{Optional, check},
    reach,
};

/// A compiled JMESPath expression, evaluated as Powertools evaluates it.
#[derive(Clone)]
pub struct PowertoolsExpression {
    text: String,
    node: Node,
    language: PowertoolsLanguage,
}

/// A JSON text, parsed as Powertools parses it. `Debug` does not show its content.
#[derive(Clone)]
pub struct PowertoolsDocument(Value);

/// The value that an expression selected, not yet checked to be a usable key.
pub(super) struct Selected {
    value: Value,
    language: PowertoolsLanguage,
}

impl PowertoolsLanguage {
    const fn variant(self) -> Variant {
        match self {
            Self::Python => Variant::Python(()),
            Self::TypeScript => Variant::TypeScript(()),
        }
    }
}

impl PowertoolsExpression {
    pub(super) fn compile(
        language: PowertoolsLanguage,
        text: &str,
    ) -> Result<Self, ExpressionError> {
        let error = |(offset, reason)| ExpressionError::at(text, offset, reason);
        if language == PowertoolsLanguage::TypeScript && fields::is_inherited(text) {
            let reason = "Powertools for TypeScript fails for an expression of this name; write `@.name` instead";
            return Err(error((0, reason.to_owned())));
        }
        limits::check_size(text).map_err(error)?;
        let node = parse(language.variant(), text, &BTreeMap::new()).map_err(error)?;
        Ok(Self { text: text.to_owned(), node, language })
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it selects the same value from every record: `'orderId'` is a text, `orderId` is a
    /// field.
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
    /// Powertools itself fails for this document.
    pub(super) fn evaluate(
        &self,
        document: &PowertoolsDocument,
        collisions: &Collisions,
    ) -> Result<Selected, SelectionError> {
        let state = State::new(self.language.variant(), collisions);
        let evaluation = Evaluation { state, absences: None };
        let mut value = evaluation.run(&self.node, &document.0)?;
        if !evaluation.state.sorted.is_empty() {
            // TypeScript evaluates once to check that there is a key, which sorts lists of the
            // event in place. The second evaluation sees them sorted.
            evaluation.state.room.set(MOST_BYTES);
            evaluation.state.budget.renew();
            value = evaluation.run(&self.node, &document.0)?;
        }
        Ok(Selected { value, language: self.language })
    }

    /// Checks that every part that it lists is present.
    ///
    /// # Errors
    /// A part is missing or empty.
    pub(super) fn check(&self, selected: &Selected) -> Result<(), SelectionError> {
        check(&self.node, &selected.value, &Optional::default())
    }
}

impl fmt::Debug for PowertoolsExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PowertoolsExpression({:?})", self.text)
    }
}

impl PowertoolsDocument {
    pub(super) fn read(language: PowertoolsLanguage, json: &str) -> Result<Self, DocumentError> {
        read(language.variant(), json).map(Self)
    }

    pub(super) fn whole(&self, language: PowertoolsLanguage) -> Selected {
        Selected { value: self.0.clone(), language }
    }
}

/// Shows no content, which must not be logged.
impl fmt::Debug for PowertoolsDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PowertoolsDocument").finish_non_exhaustive()
    }
}

impl Selected {
    /// Whether it is `null` or undefined.
    pub(super) const fn is_nothing(&self) -> bool {
        matches!(self.value, Value::Null | Value::Undefined)
    }

    /// Whether the library treats it as a missing key.
    pub(super) fn is_missing(&self) -> bool {
        match self.language {
            PowertoolsLanguage::Python => missing::is_missing_to_python(&self.value),
            PowertoolsLanguage::TypeScript => missing::is_missing_to_typescript(&self.value),
        }
    }

    /// Checks that the value as a whole is present and not empty.
    ///
    /// # Errors
    /// It is missing or empty.
    pub(super) fn check(&self) -> Result<(), SelectionError> {
        check(&Node::Current, &self.value, &Optional::default())
    }

    /// The text that the library hashes.
    ///
    /// # Errors
    /// It is too long, or undefined.
    pub(super) fn text(&self, collisions: &Collisions) -> Result<String, SelectionError> {
        let text = write(Layout::hashed(self.language.variant()), &self.value, collisions);
        text.map_err(|TooLong| SelectionError::TooLong)?.ok_or(SelectionError::Missing)
    }
}
