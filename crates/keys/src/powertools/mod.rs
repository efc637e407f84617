//! Keys of Powertools for AWS Lambda, to share a table with it or to migrate one.
//!
//! [`PowertoolsKeys`] make the same keys, fingerprints and result texts as Powertools for AWS
//! Lambda: Python ([`PowertoolsKeys::python`], 3.37) or TypeScript
//! ([`PowertoolsKeys::typescript`], 2.35). Both hash the JSON text of the selected
//! value:
//!
//! | | Python | TypeScript |
//! |---|---|---|
//! | the text | `json.dumps(.., sort_keys=True)` | `JSON.stringify(deepSort(..))` |
//! | the key | prefix, `#`, hexadecimal | prefix, `#`, base64 |
//! | the prefix | `key_prefix`, or `<function>.<module>.<qualified name>` | `keyPrefix`, or `<function>` |
//!
//! ```
//! use lambda_idempotency_keys::powertools::PowertoolsKeys;
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
//! Both libraries give some distinct records the same key, and answer one record with the other's
//! result. Such records are refused here
//! ([`SelectionError::Collision`](crate::SelectionError::Collision), or the errors for missing
//! keys), unless [`PowertoolsKeys::accept_collisions`] turns on the exact
//! behaviour of Powertools.
//!
//! Expressions are those of this library, with the functions `powertools_json`, `powertools_base64` and
//! `powertools_base64_gzip`: others, and in TypeScript members that every JavaScript object inherits (`toString`), are
//! refused at start. Excessive sizes are errors too: texts of more than 8 MiB, JSON that is nested
//! deeper than 128 levels, and more than 8 MiB of decompressed text in one record.

mod expression;
mod hash;
mod keys;
mod missing;

pub use expression::{PowertoolsDocument, PowertoolsExpression};
pub use hash::{HashFunction, UnknownHashFunction};
pub use keys::PowertoolsKeys;

pub use crate::Collision;
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
    /// The name that [`from_str`](FromStr::from_str) parses, for instance from an environment
    /// variable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "powertools-python",
            Self::TypeScript => "powertools-typescript",
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
#[error("the Powertools language is unknown; use `powertools-python` or `powertools-typescript`")]
#[non_exhaustive]
pub struct UnknownPowertoolsLanguage;
