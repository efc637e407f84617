//! A record with messages is written once more when they are sent. Its result is the same, so it is not compressed,
//! encrypted or kept elsewhere once more.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_idempotency_core::{
    key::Key,
    record::{IdempotencyRecord, Json, Owner, Status},
};

/// The most bytes of the stored forms that are kept.
const MOST: usize = 4 * 1024 * 1024;

/// The stored forms of results whose records have messages. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Unsent(Arc<Mutex<Forms>>);

#[derive(Default)]
struct Forms {
    by_claim: HashMap<Owner, (Key, Json)>,
    bytes: usize,
}

impl Unsent {
    /// Keeps the stored form of the result of this record, if it has messages.
    pub(crate) fn keep(&self, key: &Key, record: &IdempotencyRecord, form: &Json) {
        let Some(owner) = record.owner.filter(|_| record.outbox.is_some()) else { return };
        let mut forms = self.forms();
        if forms.bytes.saturating_add(form.len()) > MOST {
            // What is forgotten is encoded again.
            *forms = Forms::default();
        }
        if let Some((_, before)) = forms.by_claim.insert(owner, (key.clone(), form.clone())) {
            forms.bytes = forms.bytes.saturating_sub(before.len());
        }
        forms.bytes = forms.bytes.saturating_add(form.len());
    }

    /// The stored form of the result of this record, which has no messages any more.
    pub(crate) fn form(&self, key: &Key, record: &IdempotencyRecord) -> Option<Json> {
        let owner = marked(record)?;
        let forms = self.forms();
        let (of, form) = forms.by_claim.get(&owner)?;
        (of == key).then(|| form.clone())
    }

    /// This record was written.
    pub(crate) fn written(&self, record: &IdempotencyRecord) {
        let Some(owner) = marked(record) else { return };
        let mut forms = self.forms();
        if let Some((_, form)) = forms.by_claim.remove(&owner) {
            forms.bytes = forms.bytes.saturating_sub(form.len());
        }
    }

    /// Nothing in it can be left half done by a panic.
    fn forms(&self) -> MutexGuard<'_, Forms> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The claim that completed this record, if it has a result and no messages.
fn marked(record: &IdempotencyRecord) -> Option<Owner> {
    let is_marked = record.status == Status::Completed && record.outbox.is_none();
    record.owner.filter(|_| is_marked && record.result.is_some())
}

impl fmt::Debug for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsent").field("bytes", &self.forms().bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::clock::Timestamp;

    use super::*;

    fn record(owner: u128) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
        record.owner = Some(Owner::from_bits(owner));
        record.result = Some("1".into());
        record.outbox = Some("[]".into());
        record
    }

    fn sent(owner: u128) -> IdempotencyRecord {
        let mut record = record(owner);
        record.outbox = None;
        record
    }

    #[test]
    fn a_form_is_kept_for_its_key_and_claim_until_the_record_is_written_without_messages() {
        let (unsent, key) = (Unsent::default(), Key::from_text("a"));
        unsent.keep(&key, &record(1), &"form".into());
        unsent.written(&record(1));
        assert_eq!(unsent.form(&key, &record(1)), None, "it still has messages");
        assert_eq!(unsent.form(&key, &sent(2)), None);
        assert_eq!(unsent.form(&Key::from_text("b"), &sent(1)), None);
        assert_eq!(unsent.form(&key, &sent(1)).as_deref(), Some("form"));
        unsent.written(&sent(1));
        assert_eq!(unsent.form(&key, &sent(1)), None);
        unsent.keep(&key, &sent(1), &"form".into());
        assert_eq!(unsent.form(&key, &sent(1)), None, "it has no messages");
        assert_eq!(unsent.forms().bytes, 0);
    }

    #[test]
    fn a_few_megabytes_are_kept_at_most() {
        let (unsent, key) = (Unsent::default(), Key::from_text("a"));
        let long: Json = "x".repeat(MOST / 3).into();
        for owner in 0..10 {
            unsent.keep(&key, &record(owner), &long);
            assert!(unsent.forms().bytes <= MOST);
        }
        assert!(unsent.form(&key, &sent(9)).is_some());
    }
}
