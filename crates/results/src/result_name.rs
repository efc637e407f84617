//! The name of a result that is kept elsewhere.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::key::Key;
use sha2::{Digest as _, Sha256};

/// The name under which a result is kept in a [`ResultStore`](crate::ResultStore): 64 hexadecimal digits, a slash,
/// and 64 more. It can be a part of a URL or of a path; in a file system, the part before the slash is a folder to be made.
///
/// The first part is the SHA-256 of the record's key, the second that of the content. So nothing that is stored later
/// can replace a result to which a record refers, and a content that was changed is found.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResultName(Arc<str>);

/// The hexadecimal digits of a SHA-256.
const HASH: usize = 64;

impl ResultName {
    /// The name of this content for a record of this key.
    #[must_use]
    pub fn new(key: &Key, content: &[u8]) -> Self {
        let mut name = String::with_capacity(2 * HASH + 1);
        add_hash(&mut name, key.as_str().as_bytes());
        name.push('/');
        add_hash(&mut name, content);
        Self(name.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_hash = |text: &str| {
            text.len() == HASH && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let (key, content) = text.split_once('/')?;
        (is_hash(key) && is_hash(content)).then(|| Self(text.into()))
    }
}

fn add_hash(name: &mut String, of: &[u8]) {
    use fmt::Write as _;
    for byte in Sha256::digest(of) {
        let _ = write!(name, "{byte:02x}");
    }
}

impl fmt::Display for ResultName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResultName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResultName({self})")
    }
}
