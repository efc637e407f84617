//! JMESPath: one parser and one evaluator, in three [variants](Variant).
//!
//! ```text
//! JSON text ─ read ─► Value ─┐
//! expression ─ tokens, parser ─► Node ─ evaluate, functions ─► Value
//! ```

pub(super) mod absences;
pub(super) mod ast;
pub(super) mod coercion;
mod collision;
mod compare;
mod cursor;
mod decimal;
mod decode;
mod digits;
pub(super) mod evaluate;
pub(super) mod functions;
mod lists;
pub(super) mod numbers;
pub(super) mod parser;
pub(super) mod read;
mod scan;
pub(super) mod signatures;
mod sorted;
pub(super) mod state;
mod tokens;
pub(super) mod value;
pub(super) mod write;

pub use collision::Collision;
pub use collision::Collisions;

/// Where a mistake in an expression is, in bytes, and what it is.
pub(super) type Mistake = (usize, String);

/// Who evaluates expressions in this way. Where they differ, the code says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As the specification has it (<https://jmespath.org/specification.html>), and numbers exactly.
    Standard,
    /// `jmespath.py`, which Powertools for Python uses.
    Python,
    /// `@aws-lambda-powertools/jmespath`.
    TypeScript,
}
