//! Encryption with AES-256 in Galois/Counter Mode, which also finds every change.

use std::{fmt, sync::Arc};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::unreadable::Unreadable;

/// The most characters of the id of a key: room for an ARN, or for a data key that KMS has encrypted.
const LONGEST_ID: usize = 512;

/// A key of 256 bits with which results are encrypted, and its id, which is stored beside them. Cheap to clone.
///
/// Do not encrypt more than 2³² results with one key, because each has a random nonce of 96 bits: change the key
/// before, by [`LocalKeys::with_older`](crate::LocalKeys::with_older) or in your own
/// [`KeyProvider`](crate::KeyProvider).
///
/// ```
/// use lambda_idempotency_results::{EncryptionKey, InvalidEncryptionKey};
///
/// # fn secret() -> Vec<u8> { vec![7; 32] }
/// // 32 random bytes, the same in all functions that share the table; from a secret store.
/// let key = EncryptionKey::new("2026-11", &secret())?;
/// assert_eq!(key.id(), "2026-11");
/// assert!(EncryptionKey::new("2026-11", b"a password").is_err());
/// # Ok::<(), InvalidEncryptionKey>(())
/// ```
#[derive(Clone)]
pub struct EncryptionKey {
    id: Arc<str>,
    cipher: Arc<LessSafeKey>,
}

/// Why bytes and an id are not an encryption key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEncryptionKey {
    /// The key does not have 32 bytes.
    #[error(
        "an encryption key has 32 random bytes, and not {0}; do not use a password, and decode a key that is \
         kept as text"
    )]
    Length(usize),
    /// The id is empty or too long, or has characters that a stored result cannot have.
    #[error(
        "the id of an encryption key has 1 to 512 visible ASCII characters, without quotation marks, commas, \
         backslashes and equals signs"
    )]
    Id,
}

impl EncryptionKey {
    /// A key of 32 random bytes. The id identifies it among all keys that are in use, has 1 to 512 visible ASCII
    /// characters without `"`, `,`, `\` and `=`. It is stored beside each result, so it must not be secret.
    ///
    /// # Errors
    /// [`InvalidEncryptionKey`]: there are not 32 bytes, or the id has other characters.
    pub fn new(id: impl Into<Arc<str>>, bytes: &[u8]) -> Result<Self, InvalidEncryptionKey> {
        let id = id.into();
        if !is_id(&id) {
            return Err(InvalidEncryptionKey::Id);
        }
        let key = UnboundKey::new(&AES_256_GCM, bytes);
        let key = key.map_err(|_| InvalidEncryptionKey::Length(bytes.len()))?;
        Ok(Self { id, cipher: Arc::new(LessSafeKey::new(key)) })
    }

    /// The id, as it is stored.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn shared_id(&self) -> Arc<str> {
        Arc::clone(&self.id)
    }

    /// The nonce, the encrypted content and the tag. `about` has to be the same when it is opened.
    ///
    /// Each call takes its nonce from the operating system. A generator that was seeded before a Lambda snapshot
    /// would repeat nonces after each restore, which would reveal contents.
    pub(crate) fn seal(&self, about: &[u8], mut content: Vec<u8>) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let unique = Nonce::assume_unique_for_key(nonce);
        self.cipher.seal_in_place_append_tag(unique, Aad::from(about), &mut content).ok()?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + content.len());
        sealed.extend_from_slice(&nonce);
        sealed.append(&mut content);
        Some(sealed)
    }

    /// The content that was sealed with this key and the same `about`.
    pub(crate) fn open(&self, about: &[u8], sealed: &mut [u8]) -> Result<Vec<u8>, Unreadable> {
        let (nonce, sealed) =
            sealed.split_first_chunk_mut::<NONCE_LEN>().ok_or(Unreadable::NotAuthentic)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.cipher.open_in_place(nonce, Aad::from(about), sealed);
        opened.map(|content| content.to_vec()).map_err(|_| Unreadable::NotAuthentic)
    }
}

/// Without the key.
impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Whether a text can be the id of a key.
pub(crate) fn is_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b'\\' | b'=');
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> EncryptionKey {
        EncryptionKey::new("k", &[byte; 32]).unwrap()
    }

    #[test]
    fn each_changed_bit_is_found() {
        let sealed = key(1).seal(b"about", b"content".to_vec()).unwrap();
        assert_eq!(key(1).open(b"about", &mut sealed.clone()), Ok(b"content".to_vec()));
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key(1).open(b"about", &mut changed), Err(Unreadable::NotAuthentic), "{bit}");
        }
        for length in 0..sealed.len() {
            let mut cut = sealed[..length].to_vec();
            assert_eq!(key(1).open(b"about", &mut cut), Err(Unreadable::NotAuthentic));
        }
        assert!(key(2).open(b"about", &mut sealed.clone()).is_err());
        assert!(key(1).open(b"abouT", &mut sealed.clone()).is_err());
    }

    #[test]
    fn two_encryptions_of_one_content_differ() {
        let [one, other] = [(); 2].map(|()| key(1).seal(b"", b"content".to_vec()).unwrap());
        assert_ne!(one[..NONCE_LEN], other[..NONCE_LEN]);
        assert_ne!(one[NONCE_LEN..], other[NONCE_LEN..]);
    }

    #[test]
    fn keys_and_ids_that_cannot_be_used_are_refused() {
        for length in [0, 16, 31, 33, 64] {
            let refused = EncryptionKey::new("k", &vec![1; length]);
            assert_eq!(refused.unwrap_err(), InvalidEncryptionKey::Length(length));
        }
        for id in ["", "a b", "a,b", "a=b", "a\"b", "a\\b", "\u{e9}", &"x".repeat(513)] {
            let refused = EncryptionKey::new(id, &[1; 32]);
            assert_eq!(refused.unwrap_err(), InvalidEncryptionKey::Id, "{id}");
        }
        for id in ["1", "arn:aws:kms:eu-west-1:1234:key/ab-cd", &"x".repeat(512)] {
            assert!(EncryptionKey::new(id, &[1; 32]).is_ok(), "{id}");
        }
    }

    #[test]
    fn debug_does_not_show_the_key() {
        let shown =
            format!("{:?}", EncryptionKey::new("2026", b"0123456789abcdef0123456789abcdef"));
        assert_eq!(shown, "Ok(EncryptionKey { id: \"2026\", .. })");
    }
}
