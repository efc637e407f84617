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
//! use lambda_idempotency_keys::{powertools::PowertoolsKeys, producer::KeySpec};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let powertools = PowertoolsKeys::python("orders-fn.app.process");
//! let orders = KeySpec::new("process", "order_id").powertools(powertools).producer()?;
//! let key = orders.key(r#"{"order_id": "A-1", "ts": 1}"#)?;
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

mod hash;
mod keys;

pub use crate::Collision;
pub use hash::{HashFunction, UnknownHashFunction};
pub use keys::{PowertoolsKeys, PowertoolsLanguage, UnknownPowertoolsLanguage};
