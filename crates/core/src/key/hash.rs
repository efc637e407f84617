//! From canonical bytes to a [`Key`].

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{Key, Selection};

/// Changes if any byte that is hashed could change its meaning. Old records are then not found.
const SCHEME: &[u8] = b"lambda-idempotency key scheme 1";

/// Whose key it is: two operations, or two tenants, never share one.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The name of the operation.
    pub operation: &'a str,
    /// The tenant, where Lambda's tenant isolation names one.
    pub tenant: Option<&'a str>,
}

impl Scope<'_> {
    /// The key of what an expression selected.
    #[must_use]
    pub fn key(&self, selection: &Selection) -> Key {
        self.hash("expression", &[&selection.0])
    }

    /// The key of a record's own identity (its source, its source's ARN, its id, ...), for records
    /// whose operation names no expression.
    #[must_use]
    pub fn identity(&self, parts: &[&str]) -> Key {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        self.hash("identity", &parts)
    }

    fn hash(&self, kind: &str, parts: &[&[u8]]) -> Key {
        let mut digest = Digest::new(SCHEME);
        digest.part(self.operation.as_bytes());
        match self.tenant {
            None => digest.part(b"any tenant"),
            Some(tenant) => {
                digest.part(b"tenant");
                digest.part(tenant.as_bytes());
            }
        }
        digest.part(kind.as_bytes());
        for part in parts {
            digest.part(part);
        }
        let mut text = String::with_capacity(self.operation.len() + 65);
        text.push_str(self.operation);
        text.push('#');
        text.push_str(&digest.hex());
        Key::from_text(text)
    }
}

/// A SHA-256 over parts, each prefixed with its length so that no two lists of parts look alike.
#[derive(Clone, Debug)]
pub struct Digest(Sha256);

impl Digest {
    /// Begins with `domain`, which keeps hashes of different meaning apart.
    #[must_use]
    pub fn new(domain: &[u8]) -> Self {
        let mut digest = Self(Sha256::new());
        digest.part(domain);
        digest
    }

    /// Adds a part.
    pub fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    /// The hash as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        let mut hex = String::with_capacity(64);
        for byte in self.0.finalize() {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: Scope<'static> = Scope { operation: "op", tenant: None };

    fn selection(text: &str) -> Selection {
        Selection(text.into())
    }

    #[test]
    fn golden_keys_of_scheme_1() {
        assert_eq!(
            SCOPE.key(&selection("\"o-1\"")).as_str(),
            "op#b998c98c30b1c69205576c101bcd7c8e40faf5162574232a28d4717966bc0471"
        );
        assert_eq!(
            SCOPE.identity(&["sqs", "arn", "m-1"]).as_str(),
            "op#61fd76b976e5234f3c74bbeede285f98841414def7390b440009679bc5125af4"
        );
    }

    #[test]
    fn scopes_kinds_and_parts_do_not_meet() {
        let keys = [
            SCOPE.key(&selection("\"a\"")),
            Scope { operation: "op2", ..SCOPE }.key(&selection("\"a\"")),
            Scope { tenant: Some(""), ..SCOPE }.key(&selection("\"a\"")),
            Scope { tenant: Some("t"), ..SCOPE }.key(&selection("\"a\"")),
            SCOPE.identity(&["\"a\""]),
            SCOPE.identity(&["ab", "c"]),
            SCOPE.identity(&["a", "bc"]),
            SCOPE.identity(&["abc"]),
        ];
        let distinct: std::collections::HashSet<_> = keys.iter().map(Key::hash).collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
