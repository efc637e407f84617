//! Computes the idempotency key of a payload. This crate does not depend on a store or on Lambda.
//!
//! ```text
//! text ─ document ─► JSON value ─ expression ─► selected parts ─ canonical ─► bytes ─ hash ─► Key
//! ```
//!
//! The most important rule: **two distinct events never share a key**. A shared key would answer
//! one customer with another customer's result. Therefore missing, `null` and empty values are
//! never hashed, numbers that a double cannot hold exactly are refused, and everything that is
//! hashed is prefixed with its length.
//!
//! | | |
//! |---|---|
//! | [`Document`], [`Expression`] | the parsed JSON, and expressions on it: a part of JMESPath |
//! | [`Selection`] | what an expression selects, as canonical bytes |
//! | [`Scope`], [`KeyFormat`], [`Secret`] | how a selection becomes a [`Key`]: hashed, readable, with a secret |
//! | [`KeyPath`], [`payload`], [`record`] | where in a record the key is found |
//! | [`producer`] | the same key, computed before the event is sent |
//! | `powertools` | keys of Powertools for AWS Lambda; a feature |
//!
//! ```
//! use lambda_idempotency_keys::{Document, Expression, KeyFormat, Scope};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let by_order = Expression::compile("[tenant, order.id]")?;
//! let payload = Document::parse(r#"{"tenant":"acme","order":{"id":42,"note":"hi"}}"#)?;
//! let scope = Scope { operation: "charge", tenant: None };
//! let key = KeyFormat::Hashed.key(&scope, &by_order.select(&payload)?);
//! assert!(key.as_str().starts_with("charge#"));
//!
//! let nobody = Document::parse(r#"{"tenant":"acme","order":{}}"#)?;
//! assert!(by_order.select(&nobody).is_err(), "a missing part is never hashed");
//! # Ok(())
//! # }
//! ```

mod expression;
#[cfg_attr(
    not(feature = "powertools"),
    expect(dead_code, reason = "Powertools needs all variants")
)]
mod jmespath;
mod make_key;
mod path;
#[cfg(feature = "powertools")]
pub mod powertools;
pub mod producer;
mod readable;
mod selection;
mod selector;
mod unwinding;

pub use expression::{Document, Expression, ExpressionError, FieldSet};
pub use jmespath::{read::DocumentError, value::Collision};
pub use make_key::{Digest, Key, KeyFormat, Scope, Secret, SecretError, is_operation_name};
pub use path::{
    IntoKeyPath, IntoPayloadPath, KeyPath, PayloadPath, RecordPath, View, payload, record,
};
pub use selection::{Selection, SelectionError, Shape};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
