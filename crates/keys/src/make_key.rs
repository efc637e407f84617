//! Makes a [`Key`], the identity of a piece of work, from canonical bytes: hashes them, with a secret or without.

use std::{fmt, sync::Arc};

use hmac::{Hmac, KeyInit, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::{readable, selection::Selection};

/// Has to change whenever the meaning of a hashed byte changes. Old records are then not found.
const SCHEME: &[u8] = b"lambda-idempotency key scheme 1";

/// The operation and tenant of a key: two operations, or two tenants, never share one.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The name of the operation.
    pub operation: &'a str,
    /// The tenant, if the function uses Lambda's tenant isolation.
    pub tenant: Option<&'a str>,
}

/// Whether this is a valid operation name: 1 to 128 characters, without control characters and
/// without `#`, which ends the name in a key.
#[must_use]
pub fn is_operation_name(name: &str) -> bool {
    let usable = |c: char| c != '#' && !c.is_control();
    (1..=128).contains(&name.chars().count()) && name.chars().all(usable)
}

/// How a key is written.
///
/// Keys with a secret never equal other keys, and a readable key never equals a hashed key. If the
/// parts are too long or not safe, [`Readable`](Self::Readable) makes the same hashed key as
/// [`Hashed`](Self::Hashed). Two functions that share an operation and differ in the format would
/// therefore agree on the keys of only some records: use the same format in all of them.
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression, KeyFormat, Scope, Secret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let parts = Expression::compile("[tenant, id]")?
///     .select(&Document::parse(r#"{"tenant":"acme","id":42}"#)?)?;
/// let scope = Scope { operation: "charge", tenant: None };
/// assert!(KeyFormat::Hashed.key(&scope, &parts).as_str().starts_with("charge#"));
/// assert_eq!(KeyFormat::Readable.key(&scope, &parts).as_str(), "charge#~/acme/+42");
/// let secret = KeyFormat::Secret(Secret::new("4f1f5c0e2b7d49a8")?);
/// assert!(secret.key(&scope, &parts).as_str().starts_with("charge#hmac-"));
///
/// // A text with a space is not safe, so it is hashed.
/// let unsafe_to_read = Expression::compile("tenant")?
///     .select(&Document::parse(r#"{"tenant":"acme ltd"}"#)?)?;
/// let [readable, hashed] = [KeyFormat::Readable, KeyFormat::Hashed];
/// assert_eq!(readable.key(&scope, &unsafe_to_read), hashed.key(&scope, &unsafe_to_read));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum KeyFormat {
    /// The operation's name and a SHA-256.
    #[default]
    Hashed,
    /// The parts themselves, if they are short and safe: texts of `A-Z a-z 0-9 . _ : -`, numbers
    /// and booleans, at most 128 bytes together, in at most one list. Other parts are hashed, and
    /// so is the identity of a record without a key expression. **The store then holds data of the
    /// record**, which everyone with access to the store can read; logs still show a hash.
    Readable,
    /// The operation's name and an HMAC-SHA256 with a secret, for parts that are personal data: a
    /// plain hash of an e-mail address can be found by guessing addresses.
    Secret(Secret),
}

impl KeyFormat {
    /// [`Secret`](Self::Secret) with this secret: at least 16 bytes, preferably 32 random bytes,
    /// the same in all functions that share the operation.
    ///
    /// # Errors
    /// The secret has fewer than 16 bytes.
    ///
    /// ```
    /// use lambda_idempotency_keys::KeyFormat;
    ///
    /// assert!(KeyFormat::secret([7; 32]).is_ok());
    /// assert!(KeyFormat::secret("too short").is_err());
    /// ```
    pub fn secret(secret: impl AsRef<[u8]>) -> Result<Self, SecretError> {
        Secret::new(secret).map(Self::Secret)
    }

    /// The key of a selection.
    #[must_use]
    pub fn key(&self, scope: &Scope<'_>, selection: &Selection) -> Key {
        let canonical = selection.canonical_bytes();
        let is_readable = matches!(self, Self::Readable);
        match is_readable.then(|| readable::form(scope.tenant, canonical)).flatten() {
            Some(parts) => Key::from_text(format!("{}#{READABLE}{parts}", scope.operation)),
            None => self.hash(scope, "expression", &[canonical]),
        }
    }

    /// The key of a record's identity (its source, its source's ARN, its id, ...), for operations without a key expression.
    #[must_use]
    pub fn identity(&self, scope: &Scope<'_>, parts: &[&str]) -> Key {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        self.hash(scope, "identity", &parts)
    }

    fn hash(&self, scope: &Scope<'_>, kind: &str, parts: &[&[u8]]) -> Key {
        let mark = if matches!(self, Self::Secret(_)) { "hmac-" } else { "" };
        let mut digest = self.digest(SCHEME);
        digest.part(scope.operation.as_bytes());
        match scope.tenant {
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
        Key::from_text([scope.operation, "#", mark, &digest.hex()].concat())
    }

    /// A digest for other stored hashes of the same operation, with the secret of this format if it
    /// has one.
    #[must_use]
    pub fn digest(&self, domain: &[u8]) -> Digest {
        match self {
            Self::Hashed | Self::Readable => Digest::new(domain),
            Self::Secret(secret) => Digest::with_secret(secret, domain),
        }
    }
}

/// The identity of a piece of work, as the store keeps it.
///
/// Two events have the same key if and only if they ask for the same work. The text holds the
/// operation's name and a hash. It holds parts of the payload only with
/// [`KeyFormat::Readable`].
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

    /// The text that identifies the record in the store. Do not log it: see
    /// [`KeyFormat::Readable`].
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

    #[test]
    fn a_secret_is_never_shown_and_a_short_one_is_refused() {
        let secret = Secret::new("correct horse battery").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        let short = Secret::new([7; 15]).unwrap_err();
        assert!(short.to_string().contains("has 15 bytes"), "{short}");
    }
}
