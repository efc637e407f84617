//! Why an evaluation fails.

/// Why an expression has no value for a document. The message never quotes a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// A function was called with a value of the wrong type, or a step cannot be evaluated.
    Failed {
        /// What went wrong, with types and counts but without values.
        reason: String,
        /// The byte offset in the expression.
        offset: usize,
    },
    /// More items or text than an evaluation may make.
    TooLong,
    /// A number that a double cannot hold exactly.
    InexactNumber,
    /// An expression reference (`&name`).
    NotAValue,
}
