//! How a text is stored, which is noted with the text. A write that carries the text on leaves it so: what a claim carries
//! goes with each of its renewals and to the next claim, and a result is written again when its messages are sent.

use std::sync::Arc;

use lambda_idempotency_core::{
    key::Key,
    record::{Json, Owner},
};

use crate::{
    codec::{Codec, Place},
    part::Part,
};

/// The stored form of a text, and the place where it is stored.
struct Form {
    codec: Arc<Codec>,
    part: Part,
    key: Key,
    claim: Option<Owner>,
    stored: Json,
}

/// Notes that this text is stored in this form.
pub(crate) fn note(codec: &Arc<Codec>, place: Place<'_>, text: &Json, stored: &Json) {
    let (part, key, claim) = bound(place);
    let (codec, key, stored) = (Arc::clone(codec), key.clone(), stored.clone());
    text.note(Form { codec, part, key, claim, stored });
}

/// The form in which this text is stored in this place already.
pub(crate) fn noted(codec: &Arc<Codec>, place: Place<'_>, text: &Json) -> Option<Json> {
    let form = text.noted::<Form>()?;
    let is_there =
        Arc::ptr_eq(&form.codec, codec) && (form.part, &form.key, form.claim) == bound(place);
    is_there.then(|| form.stored.clone())
}

/// Of a text that is to stay as it is stored.
struct Left;

/// Notes that this text is what is stored, and was not read. A text from a store of results below has its form noted
/// already, by which that store leaves it.
pub(crate) fn leave(stored: &Json) {
    stored.note(Left);
}

/// Whether this text is what is stored, by this store or one above.
pub(crate) fn is_left(text: &Json) -> bool {
    text.noted::<Left>().is_some()
}

/// A text that later claims carry on belongs to none.
fn bound((part, key, claim): Place<'_>) -> Place<'_> {
    (part, key, claim.filter(|_| part.belongs_to_a_claim()))
}
