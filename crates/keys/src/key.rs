//! The identity of a piece of work.

use std::{fmt, sync::Arc};

use super::Digest;

/// The identity of a piece of work, as the store keeps it.
///
/// Two events have the same key if and only if they ask for the same work. The text holds the
/// operation's name and a hash. It holds parts of the payload only with
/// [`KeyFormat::Readable`](crate::KeyFormat::Readable).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    text: Arc<str>,
    /// The hash that logs show in place of a readable text. Computed from the text.
    hash: Option<Arc<str>>,
}

/// Follows the operation's name and `#` in a readable key. No hash begins with it.
const READABLE: char = '~';

impl Key {
    /// The key with this text, for stores that read a key back, and for tests.
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

    pub(super) fn readable(operation: &str, parts: &str) -> Self {
        Self::from_text(format!("{operation}#{READABLE}{parts}"))
    }

    /// The text that identifies the record in the store. Do not log it: see
    /// [`KeyFormat::Readable`](crate::KeyFormat::Readable).
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The hash without the operation, which logs may show. For a readable key, a hash of its text.
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
