//! Where a key is to be found in a record.

/// An expression and what it is applied to.
///
/// Most records need a field of their payload; `&str` converts to that. The record around it is
/// there for the rest:
///
/// ```
/// use lambda_idempotency_keys::{KeyPath, View, record};
/// assert_eq!(KeyPath::from("orderId").view, View::Payload);
/// assert_eq!(record("Sns.MessageId").view, View::Record);
/// assert_eq!(KeyPath::parse("record: Sns.MessageId"), record("Sns.MessageId"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPath {
    /// What the expression sees.
    pub view: View,
    /// JMESPath.
    pub expression: String,
}

/// What an expression sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The decoded payload: SQS body, SNS message, EventBridge detail.
    Payload,
    /// The record as AWS delivers it.
    Record,
}

/// An expression on the payload; the same as the plain text.
#[must_use]
pub fn payload(expression: impl Into<String>) -> KeyPath {
    KeyPath { view: View::Payload, expression: expression.into() }
}

/// An expression on the raw record, as AWS delivers it.
#[must_use]
pub fn record(expression: impl Into<String>) -> KeyPath {
    KeyPath { view: View::Record, expression: expression.into() }
}

impl KeyPath {
    /// Reads a path from text, as an environment variable gives it: an expression on the payload,
    /// or, after `record:`, on the raw record.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim().strip_prefix("record:") {
            Some(expression) => record(expression.trim()),
            None => payload(text.trim()),
        }
    }
}

impl From<&str> for KeyPath {
    fn from(expression: &str) -> Self {
        payload(expression)
    }
}

impl From<String> for KeyPath {
    fn from(expression: String) -> Self {
        payload(expression)
    }
}
