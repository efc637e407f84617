//! The language of key expressions: a subset of JMESPath (<https://jmespath.org/specification.html>) that only selects
//! and decodes, in three [variants](Variant).
//!
//! ```text
//! JSON text ─ read ─► Value ─┐
//! expression ─ tokens, parser ─► Node ─ evaluate ─► Value
//! ```
//!
//! Every expression keeps distinct values distinct: it takes members and items, puts them into lists and objects, and
//! decodes texts. It has no constants, comparisons, conditions, filters and functions that compute. It imports nothing
//! of the modules around it.

pub(super) mod ast;
mod collision;
mod cursor;
mod decimal;
mod decode;
mod digits;
mod document_error;
pub(super) mod evaluate;
pub(super) mod limits;
pub(super) mod parser;
pub(super) mod presence;
pub(super) mod read;
mod scan;
mod strict;
pub(super) mod text;
mod tokens;
pub(super) mod value;
pub(super) mod wanted;
pub(super) mod write;

pub use collision::Collision;
pub(crate) use collision::Collisions;
pub use document_error::DocumentError;

/// The byte offset of a mistake in an expression, and its message.
pub(super) type Mistake = (usize, String);

/// The implementation whose semantics are used. Comments mark where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The specification, with exact numbers.
    Standard,
    /// `jmespath.py`, which Powertools for Python uses.
    Python(OfPowertools),
    /// `@aws-lambda-powertools/jmespath`.
    TypeScript(OfPowertools),
}

/// No value without the feature, so that no program contains what only these variants do.
#[cfg(not(feature = "powertools"))]
type OfPowertools = std::convert::Infallible;
#[cfg(feature = "powertools")]
type OfPowertools = ();

impl Variant {
    pub(crate) const fn is_python(self) -> bool {
        matches!(self, Self::Python(_))
    }

    pub(crate) const fn is_typescript(self) -> bool {
        matches!(self, Self::TypeScript(_))
    }
}
