//! Where a key is found in a record.

/// An expression, and the view of the record that it is applied to.
///
/// Most keys are fields of the payload, and `&str` converts to an expression on the payload. Use
/// [`record`] for an expression on the record around the payload:
///
/// ```
/// use lambda_idempotency_keys::{KeyPath, View, record};
/// assert_eq!(KeyPath::from("orderId").view, View::Payload);
/// assert_eq!(record("Sns.MessageId").view, View::Record);
/// assert_eq!(KeyPath::parse("record: Sns.MessageId"), record("Sns.MessageId"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyPath {
    /// What the expression is applied to.
    pub view: View,
    /// The JMESPath expression.
    pub expression: String,
}

/// What an expression is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The decoded payload: SQS body, SNS message, EventBridge detail.
    Payload,
    /// The record as AWS delivers it.
    Record,
}

/// An expression on the payload. Converting a `&str` has the same result.
#[must_use]
pub fn payload(expression: impl Into<String>) -> KeyPath {
    KeyPath::new(View::Payload, expression)
}

/// An expression on the raw record, as AWS delivers it.
#[must_use]
pub fn record(expression: impl Into<String>) -> KeyPath {
    KeyPath::new(View::Record, expression)
}

impl KeyPath {
    /// An expression and what it is applied to. [`payload`] and [`record`] are shorter.
    #[must_use]
    pub fn new(view: View, expression: impl Into<String>) -> Self {
        Self { view, expression: expression.into() }
    }

    /// Parses text from an environment variable: an expression on the payload or, after `record:`,
    /// on the raw record.
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
