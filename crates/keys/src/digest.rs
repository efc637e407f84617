//! Hashes a sequence of parts, with a secret or without.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac as _};
use sha2::{Digest as _, Sha256};

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

/// The shortest secret that is accepted, in bytes.
const LEAST: usize = 16;

/// A secret for keys that are made of personal data. The store then holds an HMAC-SHA256 ([RFC
/// 2104](https://www.rfc-editor.org/rfc/rfc2104)), so that it takes the secret to find the
/// data by guessing.
///
/// Keys made with a secret never equal keys made without one. Another secret makes other keys, so
/// work that was done under the old secret is not recognised. Let the old records expire before you
/// change the secret, or expect duplicates. The secret is never shown, not even by `Debug`.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

/// A secret that is too short.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret has {bytes} bytes; use at least {LEAST}, preferably 32 random bytes")]
pub struct SecretError {
    bytes: usize,
}

impl Secret {
    /// A secret of these bytes, for instance a string from AWS Secrets Manager.
    ///
    /// # Errors
    /// The secret has fewer than 16 bytes. Use 32 random bytes.
    ///
    /// ```
    /// use lambda_idempotency_keys::Secret;
    /// assert!(Secret::new("4f1f5c0e2b7d49a8").is_ok());
    /// assert!(Secret::new("short").is_err());
    /// ```
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Self, SecretError> {
        let bytes = secret.as_ref();
        match Hmac::new_from_slice(bytes) {
            Ok(hmac) if bytes.len() >= LEAST => Ok(Self(hmac)),
            _ => Err(SecretError { bytes: bytes.len() }),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown_and_a_short_one_is_refused() {
        let secret = Secret::new("correct horse battery").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        let short = Secret::new([7; 15]).unwrap_err();
        assert!(short.to_string().contains("has 15 bytes"), "{short}");
    }
}
