//! Hashes a sequence of parts.

use hmac::Mac as _;
use sha2::{Digest as _, Sha256};

use super::Secret;

/// A SHA-256, or with a secret an HMAC-SHA256, over a sequence of parts. Each part is prefixed with
/// its length, so that different sequences never have the same bytes.
#[derive(Clone, Debug)]
pub struct Digest(Function);

#[derive(Clone, Debug)]
enum Function {
    Plain(Sha256),
    Secret(Secret),
}

impl Digest {
    /// Begins with `domain`, so that hashes with different purposes differ.
    #[must_use]
    pub fn new(domain: &[u8]) -> Self {
        Self(Function::Plain(Sha256::new())).begun(domain)
    }

    /// As [`new`](Self::new), with an HMAC, which cannot be computed without the secret.
    #[must_use]
    pub fn with_secret(secret: &Secret, domain: &[u8]) -> Self {
        Self(Function::Secret(secret.clone())).begun(domain)
    }

    fn begun(mut self, domain: &[u8]) -> Self {
        self.part(domain);
        self
    }

    /// Adds a part.
    pub fn part(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_be_bytes();
        match &mut self.0 {
            Function::Plain(sha) => {
                sha.update(length);
                sha.update(bytes);
            }
            Function::Secret(secret) => {
                secret.0.update(&length);
                secret.0.update(bytes);
            }
        }
    }

    /// The hash as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        match self.0 {
            Function::Plain(sha) => hex(&sha.finalize()),
            Function::Secret(secret) => hex(&secret.0.finalize().into_bytes()),
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            hex.push(char::from(digit + if digit < 10 { b'0' } else { b'a' - 10 }));
        }
    }
    hex
}
