//! A record's [`Provenance`] as one attribute, and back.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_idempotency_core::{clock::Timestamp, record::Provenance};

use crate::scalar::{millis, scaled};

const CLAIMED_AT: &str = "claimed_at";

/// The attribute's value.
pub(crate) fn attribute(provenance: &Provenance) -> AttributeValue {
    let texts = provenance.texts();
    let mut members = HashMap::with_capacity(texts.len().saturating_add(1));
    for (name, text) in texts {
        if let Some(text) = text {
            members.insert(name.to_owned(), AttributeValue::S(text.to_owned()));
        }
    }
    members.insert(CLAIMED_AT.to_owned(), millis(provenance.claimed_at));
    AttributeValue::M(members)
}

/// Reads the attribute; `None` if it does not say when the key was claimed.
pub(crate) fn read(value: &AttributeValue) -> Option<Provenance> {
    let members = value.as_m().ok()?;
    let claimed_at = Timestamp::from_millis(scaled(members.get(CLAIMED_AT)?.as_n().ok()?, 0)?);
    Some(Provenance::of_texts(claimed_at, |name| {
        members.get(name)?.as_s().ok().map(|text| text.as_str().into())
    }))
}
