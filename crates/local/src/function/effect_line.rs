//! A line that says that an effect happened, for tests that count effects.
//!
//! `lambda_idempotency::testing::effect` writes it. A function that does not use the library can write it itself.

use serde_json::Value;

/// An effect that a function reported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectLine {
    /// Its name: what happened.
    pub name: String,
    /// The id of the record for which it happened.
    pub record: String,
    /// The hash of the record's idempotency key, if it has one.
    pub key_hash: Option<String>,
    /// The fence of the attempt.
    pub fence: Option<u64>,
}

impl EffectLine {
    /// Reads a line of output, if it is about an effect.
    ///
    /// ```
    /// # use lambda_idempotency_local::EffectLine;
    /// let line = EffectLine::parse(r#"{"lambda_idempotency_effect":"charge","record":"m-1"}"#);
    /// assert_eq!(line.map(|line| line.name).as_deref(), Some("charge"));
    /// assert_eq!(EffectLine::parse("charged m-1"), None);
    /// ```
    pub fn parse(line: &str) -> Option<Self> {
        if !line.contains("lambda_idempotency_effect") {
            return None;
        }
        let line: Value = serde_json::from_str(line.trim()).ok()?;
        let text = |name: &str| Some(line.get(name)?.as_str()?.to_owned());
        Some(Self {
            name: text("lambda_idempotency_effect")?,
            record: text("record")?,
            key_hash: text("key_hash"),
            fence: line.get("fence").and_then(Value::as_u64),
        })
    }
}
