//! How the texts that this process has read or written are stored. A write that carries a text on leaves it so: what a claim
//! carries goes with each of its renewals and to the next claim, and a result is written again when its messages are sent.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use lambda_idempotency_core::{
    key::Key,
    record::{Json, Owner},
};

use crate::part::{Part, Place};

/// How many bytes are kept, at least, before those of texts that are gone are removed.
const LEAST: usize = 1024 * 1024;

/// The stored forms of texts, for as long as these texts are in use.
#[derive(Debug, Default)]
pub(crate) struct Forms(Mutex<Kept>);

/// Other settings store texts in other forms.
impl Clone for Forms {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[derive(Debug, Default)]
struct Kept {
    /// By the address of the text and the place where it is stored.
    forms: HashMap<(usize, Part, Key), Form>,
    bytes: usize,
    /// The bytes in use when forms were last removed.
    in_use: usize,
}

#[derive(Debug)]
struct Form {
    text: Weak<str>,
    claim: Option<Owner>,
    /// `None`: as the text itself, which would otherwise keep itself in use.
    stored: Option<Json>,
    bytes: usize,
}

impl Forms {
    /// Keeps that this text is stored in this form.
    pub(crate) fn keep(&self, place: Place<'_>, text: &Json, stored: &Json) {
        let (part, key, claim) = bound(place);
        let is_itself = Arc::ptr_eq(text.shared(), stored.shared());
        let bytes = text.len().saturating_add(stored.len());
        let form = Form {
            text: Arc::downgrade(text.shared()),
            claim,
            stored: (!is_itself).then(|| stored.clone()),
            bytes,
        };
        let mut kept = self.lock();
        let replaced = kept.forms.insert((address(text), part, key.clone()), form);
        kept.bytes = kept.bytes.saturating_add(bytes);
        kept.bytes = kept.bytes.saturating_sub(replaced.map_or(0, |replaced| replaced.bytes));
        if kept.bytes > kept.in_use.saturating_mul(2).max(LEAST) {
            kept.forms.retain(|_, form| form.text.strong_count() > 0);
            kept.bytes = kept.forms.values().map(|form| form.bytes).sum();
            kept.in_use = kept.bytes;
        }
    }

    /// The form in which this text is stored in this place already.
    pub(crate) fn find(&self, place: Place<'_>, text: &Json) -> Option<Json> {
        let (part, key, claim) = bound(place);
        let kept = self.lock();
        let form = kept.forms.get(&(address(text), part, key.clone()))?;
        // While there is a weak reference, no other text has the address.
        (form.claim == claim).then(|| form.stored.clone().unwrap_or_else(|| text.clone()))
    }

    /// No write carries this text on.
    pub(crate) fn forget(&self, (part, key, _): Place<'_>, text: &Json) {
        let mut kept = self.lock();
        if let Some(form) = kept.forms.remove(&(address(text), part, key.clone())) {
            kept.bytes = kept.bytes.saturating_sub(form.bytes);
        }
    }

    // A panic cannot leave it half-changed but for a sum, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn address(text: &Json) -> usize {
    text.shared().as_ptr().addr()
}

/// A text that later claims carry on belongs to none.
fn bound((part, key, claim): Place<'_>) -> Place<'_> {
    (part, key, claim.filter(|_| part.belongs_to_a_claim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: &Key) -> Place<'_> {
        (Part::Payload, key, None)
    }

    #[test]
    fn the_form_of_a_text_is_known_in_its_place_while_the_text_is_in_use() {
        let (forms, key, other) = (Forms::default(), Key::from_text("a"), Key::from_text("b"));
        let (text, stored) = (Json::from("text"), Json::from("stored"));
        forms.keep(place(&key), &text, &stored);
        assert_eq!(forms.find(place(&key), &text.clone()).as_ref(), Some(&stored));
        assert_eq!(forms.find(place(&key), &Json::from("text")), None, "another text");
        assert_eq!(forms.find(place(&other), &text), None);
        assert_eq!(forms.find((Part::Steps, &key, None), &text), None);
        forms.keep((Part::Result, &key, Some(Owner::from_bits(1))), &text, &stored);
        assert_eq!(forms.find((Part::Result, &key, Some(Owner::from_bits(2))), &text), None);
        forms.forget(place(&key), &text);
        assert_eq!(forms.find(place(&key), &text), None);
    }

    #[test]
    fn forms_of_texts_that_are_gone_are_removed() {
        let (forms, key) = (Forms::default(), Key::from_text("a"));
        let used = Json::from("used");
        forms.keep(place(&key), &used, &used.clone());
        for _ in 0..100 {
            let text = Json::from("x".repeat(100 * 1024));
            forms.keep(place(&key), &text, &text.clone());
        }
        assert!(forms.lock().bytes <= LEAST + 200 * 1024, "{}", forms.lock().bytes);
        assert_eq!(forms.find(place(&key), &used), Some(used.clone()));
        drop(used);
        let last = Json::from("x".repeat(2 * LEAST));
        forms.keep(place(&key), &last, &last.clone());
        assert_eq!(forms.lock().forms.len(), 1);
    }
}
