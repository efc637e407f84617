//! The hash functions that Powertools supports.

use std::str::FromStr;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// A hash function, as `hash_function` (Python) or `hashFunction` (TypeScript) names it.
///
/// MD5 is the default of both libraries, and is broken: anyone who can choose payloads can make two
/// with the same key. To keep a table of a function that used MD5, you have to use it too; that
/// function had the same risk.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Another function, which returns the digest of the bytes.
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

/// Parses the name of the function in `hashlib` and Node's `crypto`.
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

/// The error of an unknown hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown hash function: use md5, sha1, sha224, sha256, sha384 or sha512; \
     give another as `HashFunction::Other`"
)]
#[non_exhaustive]
pub struct UnknownHashFunction;
