//! A process writes some texts more than once: what a claim carries goes with each of its renewals, and the result of a
//! record with messages is written again when they are sent. They are not compressed, encrypted or kept elsewhere once
//! more, and a key provider is not asked again.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_idempotency_core::{
    key::Key,
    record::{IdempotencyRecord, Json, Owner, Status},
    store::{Verdict, Write},
};

use crate::part::Part;

/// The most bytes of texts and their stored forms that are kept.
const MOST: usize = 4 * 1024 * 1024;
/// What a form takes beside its texts, about.
const BESIDE: usize = 512;

/// The stored forms of texts that will be written again. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Reused(Arc<Mutex<Forms>>);

#[derive(Default)]
struct Forms {
    by_claim: HashMap<Owner, HashMap<Part, Form>>,
    bytes: usize,
}

/// A text, and what is stored of it.
struct Form {
    key: Key,
    text: Json,
    stored: Json,
}

impl Form {
    fn bytes(&self) -> usize {
        let texts = self.text.len().saturating_add(self.stored.len());
        texts.saturating_add(self.key.as_str().len()).saturating_add(BESIDE)
    }
}

impl Reused {
    /// Keeps the stored form of this part of a record, if the part will be written again.
    pub(crate) fn keep(&self, part: Part, key: &Key, record: &IdempotencyRecord, stored: &Json) {
        let Some(owner) = record.owner.filter(|_| is_written_again(part, record)) else { return };
        let Some(text) = part.of(record) else { return };
        let form = Form { key: key.clone(), text: text.clone(), stored: stored.clone() };
        if form.bytes() > MOST {
            return;
        }
        let mut forms = self.forms();
        if forms.bytes.saturating_add(form.bytes()) > MOST {
            // What is forgotten is encoded again.
            *forms = Forms::default();
        }
        forms.bytes = forms.bytes.saturating_add(form.bytes());
        if let Some(before) = forms.by_claim.entry(owner).or_default().insert(part, form) {
            forms.bytes = forms.bytes.saturating_sub(before.bytes());
        }
    }

    /// The stored form of this text of a claim, if it was stored before.
    pub(crate) fn form(&self, claim: Owner, part: Part, key: &Key, text: &Json) -> Option<Json> {
        let forms = self.forms();
        let form = forms.by_claim.get(&claim)?.get(&part)?;
        (form.key == *key && form.text == *text).then(|| form.stored.clone())
    }

    /// Forgets what the claim of this write has carried, if it will not be written again.
    pub(crate) fn answered(&self, claim: Option<Owner>, write: &Write, verdict: &Verdict) {
        let is_over = match (verdict, &write.record) {
            (Verdict::Written, Some(record)) => {
                !Part::ALL.into_iter().any(|part| is_written_again(part, record))
            }
            (Verdict::Written, None) | (Verdict::Found(_), _) => true,
            _ => false,
        };
        let Some(claim) = claim.filter(|_| is_over) else { return };
        let mut forms = self.forms();
        let over = forms.by_claim.remove(&claim).into_iter().flatten();
        let bytes = over.map(|(_, form)| form.bytes()).sum();
        forms.bytes = forms.bytes.saturating_sub(bytes);
    }

    /// Nothing in it can be left half done by a panic.
    fn forms(&self) -> MutexGuard<'_, Forms> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this part of the record goes with a later write of its claim, too.
const fn is_written_again(part: Part, record: &IdempotencyRecord) -> bool {
    match part {
        Part::Result => record.outbox.is_some(),
        // What gives up a claim has no owner.
        _ => matches!(record.status, Status::InProgress) && record.owner.is_some(),
    }
}

impl fmt::Debug for Reused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reused").field("bytes", &self.forms().bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "reused_tests.rs"]
mod tests;
