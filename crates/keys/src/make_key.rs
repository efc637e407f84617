//! Makes a [`Key`] from canonical bytes.

use super::{Digest, Key, Secret, SecretError, Selection, readable};

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
        let readable = match self {
            Self::Readable => readable::form(scope.tenant, canonical),
            Self::Hashed | Self::Secret(_) => None,
        };
        match readable {
            Some(text) => Key::readable(scope.operation, &text),
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
        Key::from_text(format!("{}#{mark}{}", scope.operation, digest.hex()))
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
