//! The language of key expressions: a subset of JMESPath (<https://jmespath.org/specification.html>) that only selects
//! and decodes, in three [variants](value::Variant).
//!
//! ```text
//! JSON text ─ read ─► Value ─┐
//! expression ─ tokens, parser ─► Node ─ evaluate, functions ─► Value
//! ```
//!
//! Every expression keeps distinct values distinct: it takes members and items, puts them into lists and objects, and
//! decodes texts. It has no constants, comparisons, conditions, filters and functions that compute. It imports nothing
//! of the modules around it.

pub(super) mod ast;
mod decimal;
pub(super) mod evaluate;
mod functions;
pub(super) mod parser;
pub(super) mod read;
mod tokens;
pub(super) mod value;
pub(super) mod write;
