//! Keys of other libraries, so that a table can be shared with them or taken over.
//!
//! [`PowertoolsKeys`] give a record the key, the fingerprint and the result text that Powertools for AWS
//! Lambda gives it: Python ([`PowertoolsKeys::python`], 3.37) or TypeScript
//! ([`PowertoolsKeys::typescript`], 2.35). Both hash a JSON text of what an expression selects:
//!
//! | | Python | TypeScript |
//! |---|---|---|
//! | the text | `json.dumps(.., sort_keys=True)` | `JSON.stringify(deepSort(..))` |
//! | the key | prefix, `#`, hexadecimal | prefix, `#`, base64 |
//! | the prefix | `key_prefix`, or `<function>.<module>.<qualified name>` | `keyPrefix`, or `<function>` |
//!
//! ```
//! use lambda_idempotency_powertools::PowertoolsKeys;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let powertools = PowertoolsKeys::python("orders-fn.app.process");
//! let by_order = powertools.compile("order_id")?;
//! let event = powertools.read(r#"{"order_id": "A-1", "ts": 1}"#)?;
//! let key = powertools.key(&event, Some(&by_order))?;
//! assert_eq!(key.as_str(), "orders-fn.app.process#35e4083ba11d7d06184c72e37b6428b7");
//! # Ok(())
//! # }
//! ```
//!
//! # What is refused
//!
//! Both libraries give some distinct records one key, and answer one with the other's result. Such
//! records are refused here ([`SelectionError::Collision`](lambda_idempotency_keys::SelectionError::Collision), and for what is missing the errors that our
//! own keys have), unless [`PowertoolsKeys::accept_collisions`] asks for exactly what Powertools does.
//!
//! What depends on more than the record is an error under either. In TypeScript, `sort` of texts
//! follows the machine's locale, `reverse` of a list of the event turns that around at each
//! evaluation, and a field such as `toString` that is missing is a function. Integers beyond 128 bits
//! are not added, and what would fail for every record on which it is evaluated (an unknown function)
//! is refused at start. So is what is out of proportion: texts of more than 8 MiB, JSON that nests
//! deeper than 128 levels, and more than 8 MiB of decompressed text in one record.

mod expression;
mod hash;
mod keys;

pub use expression::{PowertoolsDocument, PowertoolsExpression};
pub use hash::{HashFunction, UnknownHashFunction};
pub use keys::PowertoolsKeys;
pub use lambda_idempotency_keys::Collision;

use lambda_idempotency_keys::internal::Variant;
use std::str::FromStr;

/// A language whose keys [`PowertoolsKeys`] makes. Its name is that of [`PowertoolsLanguage::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PowertoolsLanguage {
    /// Powertools for AWS Lambda (Python): `powertools-python`.
    Python,
    /// Powertools for AWS Lambda (TypeScript): `powertools-typescript`.
    TypeScript,
}

impl PowertoolsLanguage {
    /// The name by which [`from_str`](FromStr::from_str) knows it, as in an environment variable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "powertools-python",
            Self::TypeScript => "powertools-typescript",
        }
    }
}

impl From<PowertoolsLanguage> for Variant {
    fn from(language: PowertoolsLanguage) -> Self {
        match language {
            PowertoolsLanguage::Python => Self::Python,
            PowertoolsLanguage::TypeScript => Self::TypeScript,
        }
    }
}

impl FromStr for PowertoolsLanguage {
    type Err = UnknownPowertoolsLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownPowertoolsLanguage> {
        let known = [Self::Python, Self::TypeScript].into_iter();
        known.into_iter().find(|language| language.name() == name).ok_or(UnknownPowertoolsLanguage)
    }
}

/// No [`PowertoolsLanguage`] has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no powertools of this name: `powertools-python` and `powertools-typescript` are known")]
pub struct UnknownPowertoolsLanguage;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
