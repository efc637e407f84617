//! Where a key is found in a record.

/// An expression, the view of the record that it is applied to, and its parts that may be missing.
///
/// Made from a text, with [`payload`] or with [`record`]:
///
/// ```
/// use lambda_idempotency_keys::{KeyPath, View, payload, record};
///
/// let optional = KeyPath::from(payload("[order.id, coupon]").optional(["coupon"]));
/// assert_eq!((optional.view, optional.optional), (View::Payload, vec!["coupon".to_owned()]));
/// assert_eq!(KeyPath::from(record("Sns.MessageId")).view, View::Record);
/// assert_eq!(KeyPath::from("orderId"), payload("orderId").into());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyPath {
    /// The view of the record that the expression is applied to.
    pub view: View,
    /// The JMESPath expression.
    pub expression: String,
    /// The parts of the expression that may be missing.
    pub optional: Vec<String>,
}

/// The part of a record that an expression is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The decoded payload: SQS body, SNS message, EventBridge detail.
    Payload,
    /// The record as AWS delivers it.
    Record,
}

/// An expression on the payload; made by [`payload`], or from a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct PayloadPath(KeyPath);

/// An expression on the record around the payload; made by [`record`]. Only a source has such a record, so only
/// a source's own key can be one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct RecordPath(KeyPath);

/// An expression on the payload. A text alone is one, too; this form can name parts that may be missing.
pub fn payload(expression: impl Into<String>) -> PayloadPath {
    PayloadPath(KeyPath::new(View::Payload, expression))
}

/// An expression on the raw record, as AWS delivers it.
pub fn record(expression: impl Into<String>) -> RecordPath {
    RecordPath(KeyPath::new(View::Record, expression))
}

impl KeyPath {
    /// An expression and what it is applied to, with all parts required.
    #[must_use]
    pub fn new(view: View, expression: impl Into<String>) -> Self {
        Self { view, expression: expression.into(), optional: Vec::new() }
    }

    fn or_without<'n>(mut self, parts: impl IntoIterator<Item = &'n str>) -> Self {
        self.optional.extend(parts.into_iter().map(str::to_owned));
        self
    }
}

impl PayloadPath {
    /// Allows these parts to be missing, `null` or empty: name a part of `{id: order.id, by: user}` by its name, and
    /// a part of `[order.id, user]` by its path. At least one part must still be present. Default: every part must be
    /// present. Only for keys.
    ///
    /// A missing part is hashed as missing, which is distinct from every value. The keys of records that have all parts
    /// do not change.
    ///
    /// ```
    /// use lambda_idempotency_keys::{payload, producer::KeySpec};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let path = payload("[order.id, coupon]").optional(["coupon"]);
    /// let keys = KeySpec::new("place-order", path).producer()?;
    /// let without = keys.key(r#"{ "order": { "id": 7 } }"#)?;
    /// let with = keys.key(r#"{ "order": { "id": 7 }, "coupon": "SPRING" }"#)?;
    /// assert_ne!(without, with);
    /// # Ok(())
    /// # }
    /// ```
    pub fn optional<'n>(self, parts: impl IntoIterator<Item = &'n str>) -> Self {
        Self(self.0.or_without(parts))
    }
}

impl RecordPath {
    /// Allows these parts to be missing, as [`PayloadPath::optional`] does.
    pub fn optional<'n>(self, parts: impl IntoIterator<Item = &'n str>) -> Self {
        Self(self.0.or_without(parts))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for String {}
    impl Sealed for super::PayloadPath {}
    impl Sealed for super::RecordPath {}
    impl Sealed for super::KeyPath {}

    pub trait InPayload: Sealed + Into<super::KeyPath> {}
    impl InPayload for &str {}
    impl InPayload for String {}
    impl InPayload for super::PayloadPath {}
}

/// The path of an operation's key: a text or [`payload`], because `run` and HTTP requests have
/// no record around their payload. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a path in a payload",
    label = "an operation's path is a text, or `payload(\"...\")`",
    note = "a path in the record around the payload belongs to the source that has the record: \
            `Sqs::new().key(record(\"...\"))`",
    note = "a key of several parts is one text: `.key(\"[a, b]\")`"
)]
pub trait IntoPayloadPath: sealed::Sealed {
    #[doc(hidden)]
    fn into_path(self) -> KeyPath;
}

/// The path of a source's own key: a text, [`payload`] or [`record`]. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a path of a key",
    label = "a path is a text, `payload(\"...\")` or `record(\"...\")`",
    note = "a key of several parts is one text: `.key(\"[a, b]\")`"
)]
pub trait IntoKeyPath: sealed::Sealed {
    #[doc(hidden)]
    fn into_path(self) -> KeyPath;
}

#[diagnostic::do_not_recommend]
impl<P: sealed::InPayload> IntoPayloadPath for P {
    fn into_path(self) -> KeyPath {
        self.into()
    }
}

#[diagnostic::do_not_recommend]
impl<P: Into<KeyPath> + sealed::Sealed> IntoKeyPath for P {
    fn into_path(self) -> KeyPath {
        self.into()
    }
}

impl From<&str> for KeyPath {
    fn from(expression: &str) -> Self {
        Self::new(View::Payload, expression)
    }
}

impl From<String> for KeyPath {
    fn from(expression: String) -> Self {
        Self::new(View::Payload, expression)
    }
}

impl From<PayloadPath> for KeyPath {
    fn from(PayloadPath(path): PayloadPath) -> Self {
        path
    }
}

impl From<RecordPath> for KeyPath {
    fn from(RecordPath(path): RecordPath) -> Self {
        path
    }
}
