//! The error of an invalid expression.

use std::fmt;

use super::jmespath::limits;

/// Why an expression is invalid. `Display` shows the expression with a caret under the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    expression: String,
    offset: usize,
    reason: String,
}

impl ExpressionError {
    /// An error at this byte offset of the expression.
    pub(super) fn at(text: &str, offset: usize, reason: String) -> Self {
        let expression = text.chars().take(limits::LONGEST).collect();
        Self { expression, offset: limits::characters(text, offset), reason }
    }

    /// Where the mistake is, in characters from the start of the expression.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "invalid JMESPath expression at offset {}: {}", self.offset, self.reason)?;
        writeln!(f, "  {}", self.expression.replace('\n', " "))?;
        write!(f, "  {:>1$}", '^', self.offset + 1)
    }
}

impl std::error::Error for ExpressionError {}
