//! From an event to the key that says which work it asks for. Knows no store and no Lambda.
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
//! | | |
//! |---|---|
//! | [`Document`], [`Expression`], [`Functions`] | JSON as it is read, JMESPath on it, functions in that |
//! | [`Selection`] | what an expression selects, in canonical bytes |
//! | [`Scope`], [`Form`], [`Secret`] | how a selection becomes a [`Key`]: hashed, readable, with a secret |
//! | [`KeyPath`], [`payload`], [`record`] | where in a record the key is |
//! | [`producer`] | the same key before the event is sent |
//! | [`foreign`] | keys that another library makes, such as `lambda-idempotency-powertools` |
//!
//! ```
//! use lambda_idempotency_keys::{Document, Expression, Scope};
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
mod decode;
mod document;
mod expression;
pub mod foreign;
mod functions;
mod hash;
// For `lambda-idempotency-powertools`, which evaluates with the same code. Its form may change in any
// release.
#[doc(hidden)]
pub mod internal;
mod invalid;
mod jmespath;
mod missing;
mod parts;
mod path;
pub mod producer;
mod reach;
mod readable;
mod reads;
mod secret;
mod selection;
mod signs;
mod texts;
mod warning;

pub use document::{Document, DocumentError};
pub use expression::Expression;
pub use functions::Functions;
pub use hash::{Digest, Form, Scope, is_operation_name};
pub use invalid::ExpressionError;
pub use jmespath::Loss;
pub use parts::Shape;
pub use path::{KeyPath, View, payload, record};
pub use reads::Reads;
pub use secret::{Secret, SecretError};
pub use selection::{Selection, SelectionError};
pub use warning::Warning;

use std::{fmt, sync::Arc};

/// The identity of a piece of work, as the store keeps it.
///
/// Two events have the same key if and only if they ask for the same work. The text holds the
/// operation's name and a hash, and a part of the payload only where [`Form::Readable`] was asked
/// for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    text: Arc<str>,
    /// What logs show, if the text is not for them. It follows from the text.
    hash: Option<Arc<str>>,
}

/// What a readable key has behind the operation's name and `#`, and no hash begins with.
const READABLE: char = '~';

impl Key {
    /// The key with this text, for stores that read one back, and for tests.
    #[must_use]
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let is_readable = text.rsplit_once('#').is_some_and(|(_, tail)| tail.starts_with(READABLE));
        let hash = is_readable.then(|| {
            let mut digest = Digest::new(b"lambda-idempotency readable key 1");
            digest.part(text.as_bytes());
            digest.hex().into()
        });
        Self { text, hash }
    }

    fn readable(operation: &str, parts: &str) -> Self {
        Self::from_text(format!("{operation}#{READABLE}{parts}"))
    }

    /// The text that identifies the record in the store. Not for logs: see [`Form::Readable`].
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The hash alone, without the operation: what logs show. Of a readable key, a hash of it.
    #[must_use]
    pub fn hash(&self) -> &str {
        match &self.hash {
            Some(hash) => hash,
            None => self.text.rsplit_once('#').map_or(&*self.text, |(_, hash)| hash),
        }
    }
}

/// The operation and the hash, as logs may show them.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.hash, self.text.rsplit_once('#')) {
            (Some(hash), Some((operation, _))) => write!(f, "{operation}#{hash}"),
            _ => f.write_str(&self.text),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readable_key_is_shown_as_a_hash() {
        let key = Key::from_text("charge#~/ann/+42");
        assert_eq!(key.as_str(), "charge#~/ann/+42");
        assert_eq!(key.hash().len(), 64);
        for shown in [key.hash().to_owned(), key.to_string(), format!("{key:?}")] {
            assert!(!shown.contains("ann"), "{shown}");
        }
        assert_ne!(key.hash(), Key::from_text("charge#~/ann/+43").hash());
        assert_ne!(key.hash(), Key::from_text("refund#~/ann/+42").hash());
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
