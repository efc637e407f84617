//! How keys are found and written: paths, and the format of keys.
//!
//! [`Operation::key`](crate::Operation::key) takes a text; the types here are for what a text cannot say.

pub use lambda_idempotency_keys::{
    IntoKeyPath, IntoPayloadPath, Key, KeyFormat, KeyPath, PayloadPath, RecordPath, Secret,
    SecretError, View,
};
