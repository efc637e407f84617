//! The secret of [`KeyFormat::Secret`](crate::KeyFormat::Secret).

use std::fmt;

use hmac::{Hmac, KeyInit};
use sha2::Sha256;

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
pub struct Secret(pub(super) Hmac<Sha256>);

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
    use hmac::Mac;

    use super::{super::digest::hex, *};

    /// RFC 4231, test cases 3, 4, 6 and 7, whose keys are long enough.
    #[test]
    fn a_secret_computes_hmac_sha256() {
        let key_4: Vec<u8> = (1..=25).collect();
        let larger =
            b"This is a test using a larger than block-size key and a larger than block-size \
                       data. The key needs to be hashed before being used by the HMAC algorithm.";
        let cases: [(&[u8], &[u8], &str); 4] = [
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                &key_4,
                &[0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                &[0xaa; 131],
                larger,
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ];
        for (key, data, expected) in cases {
            let mut mac = Secret::new(key).unwrap().0;
            mac.update(data);
            assert_eq!(hex(&mac.finalize().into_bytes()), expected);
        }
    }

    #[test]
    fn a_secret_is_never_shown_and_a_short_one_is_refused() {
        let secret = Secret::new("correct horse battery").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        let short = Secret::new([7; 15]).unwrap_err();
        assert!(short.to_string().contains("has 15 bytes"), "{short}");
    }
}
