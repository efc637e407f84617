//! From an event to the key that says which work it asks for.
//!
//! ```text
//! text ─ document ─► JSON value ─ expression ─► selected parts ─ canonical ─► bytes ─ hash ─► Key
//! ```
//!
//! The rule above all others: **two distinct events never share a key**. A wrong key answers one
//! customer with another's result. So nothing that is missing, `null` or empty is ever hashed, a
//! number that a double cannot hold exactly is refused, and everything that goes into the hash is
//! prefixed with its length.
//!
//! ```
//! use lambda_idempotency_core::key::{Document, Expression, Scope};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let by_order = Expression::compile("[tenant, order.id]")?;
//! let payload = Document::parse(r#"{"tenant":"acme","order":{"id":42,"note":"hi"}}"#)?;
//! let scope = Scope { operation: "charge", tenant: None };
//! let key = scope.key(&by_order.select(&payload)?);
//! assert!(key.as_str().starts_with("charge#"));
//!
//! let nobody = Document::parse(r#"{"tenant":"acme","order":{}}"#)?;
//! assert!(by_order.select(&nobody).is_err(), "a missing part is never hashed");
//! # Ok(())
//! # }
//! ```

mod canonical;
pub mod dialect;
mod document;
mod expression;
mod functions;
mod hash;
mod numeral;
mod parts;
mod path;
mod reading;
mod syntax;

pub use document::{Document, DocumentError};
pub use expression::{Expression, ExpressionError, Selection, SelectionError};
pub use hash::{Digest, Scope};
pub use path::{KeyPath, View, payload, record};

use std::{fmt, sync::Arc};

/// The identity of a piece of work, as the store keeps it.
///
/// Two events have the same key if and only if they ask for the same work. The text holds the
/// operation's name and a hash, never a part of the payload.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key with this text, for stores that read one back, and for tests.
    #[must_use]
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text that identifies the record in the store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash alone, without the operation: what logs show.
    #[must_use]
    pub fn hash(&self) -> &str {
        self.0.rsplit_once('#').map_or(&*self.0, |(_, hash)| hash)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}
