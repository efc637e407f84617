//! Expressions and documents with the semantics of Powertools.

use std::fmt;

use super::{PowertoolsLanguage, missing};
use crate::{
    DocumentError, ExpressionError, SelectionError, Shape,
    field_sets::FieldSets,
    jmespath::{
        Collisions, Variant,
        ast::Node,
        evaluate::Evaluation,
        parser::parse,
        presence::{Absent, Optional},
        read::read,
        value::Value,
        write::{TooLong, write},
    },
    parts::check,
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
    absent: Option<Absent>,
    /// How distinct documents could have the same value.
    pub(super) collisions: Collisions,
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
        let node = parse(language.variant(), text).map_err(error)?;
        Ok(Self { text: text.to_owned(), node, language })
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// As [`Expression::reads`](crate::Expression::reads).
    pub(crate) fn reads(&self, member: &str) -> bool {
        FieldSets::of(&self.node).document.reaches(member)
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::of(&self.node)
    }

    /// The value that it selects.
    ///
    /// # Errors
    /// Powertools itself fails for this document.
    pub(super) fn evaluate(
        &self,
        document: &PowertoolsDocument,
    ) -> Result<Selected, SelectionError> {
        let mut evaluation = Evaluation::new(self.language.variant());
        let value = evaluation.run(&self.node, &document.0)?;
        let collisions = std::mem::take(&mut evaluation.collisions);
        Ok(Selected { value, absent: evaluation.absent(), collisions, language: self.language })
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
        let (value, collisions) = (self.0.clone(), Collisions::default());
        Selected { value, absent: None, collisions, language }
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

    /// Checks that the value is present, and each part that the expression lists.
    ///
    /// # Errors
    /// It or a part is missing or empty.
    pub(super) fn check(&mut self) -> Result<(), SelectionError> {
        check(&self.value, self.absent.take(), &Optional::default())
    }

    /// The text that the library hashes.
    ///
    /// # Errors
    /// It is too long, or undefined.
    pub(super) fn text(&self) -> Result<String, SelectionError> {
        let text = write(self.language.variant(), &self.value, &self.collisions);
        text.map_err(|TooLong| SelectionError::TooLong)?.ok_or(SelectionError::Missing)
    }
}
