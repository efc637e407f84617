//! From canonical bytes to a [`Key`].

use super::{Digest, Key, Secret, SecretError, Selection, readable};

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

/// Whether an operation can have this name: 1 to 128 characters, none of them `#`, which ends the
/// name in a key, or a control character.
#[must_use]
pub fn is_operation_name(name: &str) -> bool {
    let usable = |c: char| c != '#' && !c.is_control();
    (1..=128).contains(&name.chars().count()) && name.chars().all(usable)
}

/// How a key is written.
///
/// Keys with a secret equal no others. A readable key equals no hash; but where the parts are too long or
/// not safe to read, [`Readable`](Self::Readable) hashes them, and the key is the one that
/// [`Hashed`](Self::Hashed) makes of the same record. So two operations of one name, one readable and one
/// not, share the keys of some records and not of others: let all functions that share an operation
/// have one form.
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression, KeyFormat, Scope, Secret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let parts = Expression::compile("[tenant, id]")?
///     .select(&Document::parse(r#"{"tenant":"acme","id":42}"#)?)?;
/// let scope = Scope { operation: "charge", tenant: None };
/// assert_eq!(KeyFormat::Hashed.key(&scope, &parts), scope.key(&parts));
/// assert_eq!(KeyFormat::Readable.key(&scope, &parts).as_str(), "charge#~/acme/+42");
/// let secret = KeyFormat::Secret(Secret::new("4f1f5c0e2b7d49a8")?);
/// assert!(secret.key(&scope, &parts).as_str().starts_with("charge#hmac-"));
///
/// // With a space it is not safe to read, and hashed.
/// let unsafe_to_read = Expression::compile("tenant")?
///     .select(&Document::parse(r#"{"tenant":"acme ltd"}"#)?)?;
/// assert_eq!(KeyFormat::Readable.key(&scope, &unsafe_to_read), scope.key(&unsafe_to_read));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum KeyFormat {
    /// The operation and a SHA-256, of which nothing can be read.
    #[default]
    Hashed,
    /// The parts themselves, where they are short and safe, else hashed: texts of
    /// `A-Z a-z 0-9 . _ : -`, numbers and booleans, at most 128 bytes together, in one list at most.
    /// **The store then holds data of the record**, for whoever can read its keys; logs still show
    /// a hash. A record's own identity is hashed.
    Readable,
    /// The operation and an HMAC-SHA256 with a secret, for parts that are personal data: a plain
    /// hash of an e-mail address is found by trying addresses.
    Secret(Secret),
}

impl Scope<'_> {
    /// The key of what an expression selected, hashed.
    #[must_use]
    pub fn key(&self, selection: &Selection) -> Key {
        KeyFormat::Hashed.key(self, selection)
    }

    /// The key of a record's own identity (its source, its source's ARN, its id, ...), for records
    /// whose operation names no expression; hashed.
    #[must_use]
    pub fn identity(&self, parts: &[&str]) -> Key {
        KeyFormat::Hashed.identity(self, parts)
    }
}

impl KeyFormat {
    /// With this secret: at least 16 bytes, best 32 random ones, the same for all who share the operation.
    ///
    /// # Errors
    /// It is shorter.
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

    /// The key of what an expression selected.
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

    /// The key of a record's own identity.
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

    /// A digest for what is stored beside a key of this form: with its secret, if it has one.
    #[must_use]
    pub fn digest(&self, domain: &[u8]) -> Digest {
        match self {
            Self::Hashed | Self::Readable => Digest::new(domain),
            Self::Secret(secret) => Digest::with_secret(secret, domain),
        }
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
        let secret = |text| KeyFormat::Secret(Secret::new(text).unwrap());
        let formats = [
            KeyFormat::Hashed,
            KeyFormat::Readable,
            secret("a secret of mine"),
            secret("another of mine."),
        ];
        let mut keys = Vec::new();
        for format in &formats {
            let key = |scope: Scope<'_>| format.key(&scope, &selection("\"a\""));
            keys.extend([
                key(SCOPE),
                key(Scope { operation: "op2", ..SCOPE }),
                key(Scope { tenant: Some("t"), ..SCOPE }),
            ]);
            // What cannot be read is hashed.
            if !matches!(format, KeyFormat::Readable) {
                let identity = |parts: &[&str]| format.identity(&SCOPE, parts);
                keys.extend([
                    key(Scope { tenant: Some(""), ..SCOPE }),
                    identity(&["\"a\""]),
                    identity(&["ab", "c"]),
                    identity(&["a", "bc"]),
                    identity(&["abc"]),
                ]);
            }
        }
        let distinct: std::collections::HashSet<_> = keys.iter().map(Key::hash).collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
