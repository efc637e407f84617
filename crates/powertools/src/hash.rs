//! The hash functions that the libraries can be set to.

use std::{fmt, str::FromStr};

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// A hash function, as `hash_function` (Python) or `hashFunction` (TypeScript) names it.
///
/// MD5 is the default of both, and is broken: who can choose payloads can make two of one key. Where
/// a table is to be taken over from a function that used it, there is no other choice; that function
/// accepted the same risk.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub enum HashFunction {
    /// `md5`, the default.
    #[default]
    Md5,
    /// `sha1`.
    Sha1,
    /// `sha224`.
    Sha224,
    /// `sha256`.
    Sha256,
    /// `sha384`.
    Sha384,
    /// `sha512`.
    Sha512,
    /// Any other: the digest of some bytes.
    Other(fn(&[u8]) -> Vec<u8>),
}

impl HashFunction {
    pub(super) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => Md5::digest(bytes).to_vec(),
            Self::Sha1 => Sha1::digest(bytes).to_vec(),
            Self::Sha224 => Sha224::digest(bytes).to_vec(),
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha384 => Sha384::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
            Self::Other(function) => function(bytes),
        }
    }
}

/// Reads the name that `hashlib` and Node's `crypto` know the function by.
impl FromStr for HashFunction {
    type Err = UnknownHashFunction;

    fn from_str(name: &str) -> Result<Self, UnknownHashFunction> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "md5" => Self::Md5,
            "sha1" => Self::Sha1,
            "sha224" => Self::Sha224,
            "sha256" => Self::Sha256,
            "sha384" => Self::Sha384,
            "sha512" => Self::Sha512,
            _ => return Err(UnknownHashFunction),
        })
    }
}

impl fmt::Debug for HashFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
            Self::Other(_) => "other",
        })
    }
}

/// No [`HashFunction`] has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no hash function of this name: md5, sha1, sha224, sha256, sha384 and sha512 are known; \
     give another as `HashFunction::Other`"
)]
pub struct UnknownHashFunction;
