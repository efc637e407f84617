//! The name of a result that is kept elsewhere.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::{key::Key, record::Owner};
use sha2::{Digest as _, Sha256};

/// The name under which a result is kept in a [`ResultStore`](crate::ResultStore): 64 hexadecimal digits, a slash,
/// and 32 more. It can be a part of a URL or of a path.
///
/// The first part is the SHA-256 of the record's key, the second the token of the claim. So a worker that has lost its
/// lease cannot overwrite what its successor has stored, and a write that is sent again replaces itself.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResultName(Arc<str>);

const KEY: usize = 64;
const OWNER: usize = 32;

impl ResultName {
    /// The name of the result that `owner` has for `key`.
    #[must_use]
    pub fn new(key: &Key, owner: Owner) -> Self {
        use fmt::Write as _;
        let mut name = String::with_capacity(KEY + 1 + OWNER);
        for byte in Sha256::digest(key.as_str()) {
            let _ = write!(name, "{byte:02x}");
        }
        let _ = write!(name, "/{owner}");
        Self(name.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_hex = |text: &str, length| {
            text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let (key, owner) = text.split_once('/')?;
        (is_hex(key, KEY) && is_hex(owner, OWNER)).then(|| Self(text.into()))
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
