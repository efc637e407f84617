//! The parts of an idempotency record that are stored in another form.

use lambda_idempotency_core::{
    key::Key,
    record::{IdempotencyRecord, Json, Owner},
};

/// A part of a record: which one, the key of the record, and the claim that wrote it.
pub(crate) type Place<'k> = (Part, &'k Key, Option<Owner>);

/// A text of an idempotency record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Result,
    Steps,
    Outbox,
    Payload,
}

impl Part {
    /// All parts.
    pub(crate) const ALL: [Self; 4] = [Self::Result, Self::Steps, Self::Outbox, Self::Payload];

    /// The parts that are encrypted if results are, and are otherwise stored as they are.
    pub(crate) const OTHERS: [Self; 3] = [Self::Steps, Self::Outbox, Self::Payload];

    /// The text of this part.
    pub(crate) const fn of(self, record: &IdempotencyRecord) -> Option<&Json> {
        match self {
            Self::Result => record.result.as_ref(),
            Self::Steps => record.steps.as_ref(),
            Self::Outbox => record.outbox.as_ref(),
            Self::Payload => record.payload.as_ref(),
        }
    }

    pub(crate) const fn of_mut(self, record: &mut IdempotencyRecord) -> &mut Option<Json> {
        match self {
            Self::Result => &mut record.result,
            Self::Steps => &mut record.steps,
            Self::Outbox => &mut record.outbox,
            Self::Payload => &mut record.payload,
        }
    }

    /// Whether it is written by one claim and stays with it. The others are carried from claim to claim, also by tools
    /// that do not decrypt them.
    pub(crate) const fn belongs_to_a_claim(self) -> bool {
        matches!(self, Self::Result | Self::Outbox)
    }

    /// The name that encrypted contents of it are bound to. It must not change.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Result => None,
            Self::Steps => Some("steps"),
            Self::Outbox => Some("outbox"),
            Self::Payload => Some("payload"),
        }
    }

    /// In errors, if it cannot be read `when`: at all, or now.
    pub(crate) fn unread(self, when: &str) -> String {
        let (what, then) = match self {
            Self::Result => ("the result of a settled record", "the work is not done again"),
            Self::Steps => ("what a record keeps of finished steps", "its key is not claimed"),
            Self::Outbox => ("the outbox of a completed record", "its messages are not sent"),
            Self::Payload => ("the payload of a record", "its key is not claimed"),
        };
        format!("{what} cannot be read{when}, and {then}")
    }

    /// In errors, if it cannot be stored now.
    pub(crate) fn unstored(self) -> String {
        let what = match self {
            Self::Result => "a result",
            Self::Steps => "what a record keeps of finished steps",
            Self::Outbox => "an outbox",
            Self::Payload => "the payload of a record",
        };
        format!("{what} cannot be stored now")
    }
}
