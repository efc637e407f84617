//! The fields of a document that expressions read; the others are not parsed.

use std::{collections::BTreeMap, sync::Arc};

/// The fields of a document that some expressions read. See
/// [`Document::read`](super::Document::read).
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression, FieldSet};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (key, amount) = (Expression::compile("order.id")?, Expression::compile("order.amount")?);
/// let reads = FieldSet::of([&key, &amount]);
/// // The photo is not copied, and its content has no effect.
/// let payload = r#"{"order":{"id":"o-1","amount":5},"photo":"iVBORw0KGgoAAAANSUhEUg"}"#;
/// let document = Document::read(payload, &reads)?;
/// assert_eq!(key.select(&document)?.canonical_bytes(), b"\"o-1\"");
/// assert_eq!(amount.select(&document)?.canonical_bytes(), b"5");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) document: Arc<Wanted>,
}

/// The part of a value that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    All,
    /// Whether it is present, and these members of it.
    Members(BTreeMap<String, Wanted>),
}

impl Wanted {
    pub(super) const fn none() -> Self {
        Self::Members(BTreeMap::new())
    }

    /// Whether a document that was read with `self` has all fields of `other`.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Members(_), Self::All) => false,
            (Self::Members(read), Self::Members(wanted)) => wanted
                .iter()
                .all(|(name, wanted)| read.get(name).is_some_and(|read| read.covers(wanted))),
        }
    }

    /// Whether the member with this path is read.
    pub(super) fn reaches(&self, member: &str) -> bool {
        let mut wanted = Some(self);
        for name in member.split('.') {
            wanted = match wanted {
                Some(Self::Members(members)) => members.get(name),
                other => other,
            };
        }
        wanted.is_some()
    }

    pub(super) fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Members(members), Self::Members(others)) => {
                for (name, other) in others {
                    members.entry(name.clone()).or_insert_with(Self::none).merge(other);
                }
            }
            (Self::Members(_), Self::All) => *self = Self::All,
            (Self::All, _) => {}
        }
    }
}
