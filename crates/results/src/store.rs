//! The store around another: encodes what is written, and decodes what is found.

use std::num::NonZeroUsize;

use futures_util::{
    future::join_all,
    stream::{FuturesUnordered, StreamExt as _},
};
use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page},
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Json, Owner},
    store::{
        Capabilities, Guard, RecordVersion, Store, StoreError, StoreErrorKind, Verdict, Write,
    },
};

use crate::{
    compression::Turns,
    envelope::is_form,
    part::{Part, Place},
    results::Results,
};

/// The position of a write in its call, and what it has become.
type Encoded = (usize, Result<Write, StoreError>);

impl<S: Store> Store for Results<S> {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let verdicts = if writes.iter().filter_map(|write| write.record.as_ref()).any(has_texts)
            {
                self.write_encoded(writes, call_deadline).await
            } else {
                self.store.write(writes, call_deadline).await
            };
            writes.iter().zip(&verdicts).for_each(|(write, verdict)| self.wrote(write, verdict));
            if !verdicts.iter().any(|verdict| found(verdict).is_some_and(has_texts)) {
                return verdicts;
            }
            let is_shared = writes.len() > 1;
            let decoded = writes.iter().zip(verdicts).map(|(write, verdict)| {
                self.decoded_verdict(write, verdict, is_shared, call_deadline)
            });
            join_all(decoded).await
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move {
            let found = self.store.read(keys, call_deadline).await;
            if !found.iter().flatten().flatten().any(has_texts) {
                return found;
            }
            let until = self.until(keys.len() > 1, call_deadline);
            let decoded = keys.iter().zip(found).map(async |(key, found)| match found {
                Ok(Some(record)) => self.decoded(key, record, until).await.map(Some),
                other => other,
            });
            join_all(decoded).await
        })
    }
}

impl<S: Browse> Browse for Results<S> {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let page = self.store.page(after, limit, call_deadline).await?;
            Ok(self.decoded_page(page, call_deadline).await)
        })
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let page = self.store.left(left, after, limit, call_deadline).await?;
            Ok(self.decoded_page(page, call_deadline).await)
        })
    }

    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        self.store.mark_sent(records, call_deadline)
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.store.count(call_deadline)
    }
}

impl<S: Browse> Results<S> {
    async fn decoded_page(&self, page: Page, call_deadline: Timestamp) -> Page {
        let decoded = page.items.into_iter().map(async |(key, item)| match item {
            Ok(record) => {
                let record = self.decoded(&key, record, call_deadline).await;
                (key, record)
            }
            error => (key, error),
        });
        Page::new(join_all(decoded).await, page.next)
    }
}

/// Whether the environment asks for the messages of errors, as `lambda-idempotency` reads it.
fn shows_error_messages() -> bool {
    let variable = std::env::var("IDEMPOTENCY_LOG_ERROR_MESSAGES").unwrap_or_default();
    variable == "1" || variable.eq_ignore_ascii_case("true")
}

impl<S: Store> Results<S> {
    /// Encodes results and writes. A write is sent as soon as it is encoded, together with those that are ready at the
    /// same time: usually all. No completion waits for the encryption key, the upload or the long compression of
    /// another.
    async fn write_encoded(&self, writes: &[Write], call_deadline: Timestamp) -> Vec<Verdict> {
        let deadline = self.codec.half_until(call_deadline);
        let turns = Turns::default();
        let encoded: FuturesUnordered<BoxFuture<'_, Encoded>> = writes
            .iter()
            .enumerate()
            .map(|(at, write)| -> BoxFuture<'_, Encoded> {
                let turns = &turns;
                Box::pin(async move { (at, self.encoded(write, turns, deadline).await) })
            })
            .collect();
        let mut encoded = encoded.ready_chunks(writes.len().max(1));
        let mut sent = FuturesUnordered::new();
        let mut verdicts: Vec<_> = writes.iter().map(|_| Verdict::Unknown(unanswered())).collect();
        loop {
            tokio::select! {
                biased;
                Some(answers) = sent.next() => {
                    for (at, verdict) in answers {
                        if let Some(place) = verdicts.get_mut(at) {
                            *place = verdict;
                        }
                    }
                }
                Some(ready) = encoded.next() => sent.push(self.send(ready, call_deadline)),
                else => return verdicts,
            }
        }
    }

    async fn encoded(
        &self,
        write: &Write,
        turns: &Turns,
        deadline: Timestamp,
    ) -> Result<Write, StoreError> {
        let mut write = write.clone();
        let Write { key, record: Some(record), .. } = &mut write else { return Ok(write) };
        let encoded = self.encode(key, record, turns, deadline).await;
        if let Err(error) = &encoded {
            // The cause is a text of the application, which is logged like the messages of handlers' errors.
            let cause = std::error::Error::source(error).filter(|_| shows_error_messages());
            tracing::warn!(
                %key, %error, error_message = cause.map(tracing::field::display), "a part of a record is not stored"
            );
        }
        encoded.map(|()| write)
    }

    /// Encodes the parts of a record that are not stored yet.
    async fn encode(
        &self,
        key: &Key,
        record: &mut IdempotencyRecord,
        turns: &Turns,
        deadline: Timestamp,
    ) -> Result<(), StoreError> {
        for part in Part::ALL {
            let place = (part, key, record.owner);
            let stored = match part.of(record) {
                None => None,
                Some(text) => match self.codec.forms.find(place, text) {
                    Some(stored) => Some(stored),
                    None => {
                        let stored = self.codec.encode(place, record, turns, deadline).await?;
                        if let Some(stored) = &stored {
                            self.codec.forms.keep(place, text, stored);
                        }
                        stored
                    }
                },
            };
            *part.of_mut(record) = stored;
        }
        Ok(())
    }

    /// Sends those that could be encoded.
    async fn send(&self, ready: Vec<Encoded>, call_deadline: Timestamp) -> Vec<(usize, Verdict)> {
        let (mut places, mut writes, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
        for (at, encoded) in ready {
            match encoded {
                Ok(write) => {
                    places.push(at);
                    writes.push(write);
                }
                Err(error) => verdicts.push((at, Verdict::Unknown(error))),
            }
        }
        if !writes.is_empty() {
            let answers = self.store.write(&writes, call_deadline).await;
            verdicts.extend(places.into_iter().zip(answers));
        }
        verdicts
    }
}

impl<S> Results<S> {
    /// The result of a completion is written again only with the mark that its messages are sent.
    fn wrote(&self, write: &Write, verdict: &Verdict) {
        let Some(record) = &write.record else { return };
        if let (Verdict::Written, Some(result), None) = (verdict, &record.result, &record.outbox) {
            self.codec.forms.forget((Part::Result, &write.key, record.owner), result);
        }
    }

    /// The record with all parts as they were written.
    async fn decoded(
        &self,
        key: &Key,
        record: IdempotencyRecord,
        deadline: Timestamp,
    ) -> Result<IdempotencyRecord, StoreError> {
        let record = self.decoded_parts(key, record, deadline).await?;
        self.decoded_result(key, record, deadline).await
    }

    /// The record with all parts but its result as they were written.
    async fn decoded_parts(
        &self,
        key: &Key,
        mut record: IdempotencyRecord,
        deadline: Timestamp,
    ) -> Result<IdempotencyRecord, StoreError> {
        for part in Part::OTHERS {
            let Some(stored) = part.of(&record) else { continue };
            let decoded = match self.text((part, key, record.owner), stored, deadline).await {
                Err(error) if self.codec.is_needed(&record) => return Err(error),
                decoded => decoded.ok().flatten(),
            };
            *part.of_mut(&mut record) = decoded;
        }
        Ok(record)
    }

    async fn decoded_result(
        &self,
        key: &Key,
        mut record: IdempotencyRecord,
        deadline: Timestamp,
    ) -> Result<IdempotencyRecord, StoreError> {
        let Some(stored) = &record.result else { return Ok(record) };
        let place = (Part::Result, key, record.owner);
        match self.text(place, stored, deadline).await {
            Ok(Some(result)) => {
                if record.outbox.is_none() {
                    self.codec.forms.forget(place, &result);
                }
                record.result = Some(result);
            }
            Ok(None) => {
                tracing::warn!(%key, "the result of a record is not in the result store any more");
                record.result = None;
            }
            Err(error) if self.codec.is_answer(&record) => return Err(error),
            // The key can be claimed again, whether its old result can be read or not.
            Err(_) => record.result = None,
        }
        Ok(record)
    }

    /// The text of which this is stored; `None` if it is not there any more.
    async fn text(
        &self,
        place: Place<'_>,
        stored: &Json,
        deadline: Timestamp,
    ) -> Result<Option<Json>, StoreError> {
        let text = match is_form(stored) {
            true => self.codec.decode(place, stored, deadline).await?,
            false => Some(stored.clone()),
        };
        if let Some(text) = &text {
            self.codec.forms.keep(place, text, stored);
        }
        Ok(text)
    }

    /// Until when a result is waited for. Other records wait for the answer of a call that they share with it; a
    /// claim that gets none in half of the time is sent again, by itself.
    fn until(&self, is_shared: bool, deadline: Timestamp) -> Timestamp {
        if is_shared { self.codec.half_until(deadline) } else { deadline }
    }

    async fn decoded_verdict(
        &self,
        write: &Write,
        verdict: Verdict,
        is_shared: bool,
        deadline: Timestamp,
    ) -> Verdict {
        let Verdict::Found(Some(record)) = verdict else { return verdict };
        let until = self.until(is_shared, deadline);
        // Without its steps or its messages, the record would be another one.
        let mut record = match self.decoded_parts(&write.key, record, until).await {
            Ok(record) => record,
            Err(error) => return Verdict::Unknown(error),
        };
        // The completion of this very claim, whose answer was lost: the worker has to learn of it, and has its result. The
        // result of other work answers nobody here.
        let own = own(write, &record);
        let is_dispensable = own.is_some() || is_of_other_work(write, &record);
        // To who settles a claim, the answer says above all that the claim is over.
        let holds = matches!(write.guard, Guard::OwnedBy(_));
        let until = self.until(is_dispensable || holds || is_shared, deadline);
        match self.decoded_result(&write.key, record.clone(), until).await {
            Err(_) if is_dispensable => record.result = own.cloned().flatten(),
            Err(error) => return Verdict::Unknown(error),
            Ok(decoded) => record = decoded,
        }
        Verdict::Found(Some(record))
    }
}

/// The result that a write has, if the record found is the one that it writes.
fn own<'w>(write: &'w Write, found: &IdempotencyRecord) -> Option<&'w Option<Json>> {
    let ours = write.record.as_ref()?;
    let is_own = found.owner.is_some() && found.owner == owner(write);
    (is_own && ours.status == found.status).then_some(&ours.result)
}

/// Whether the record found is one of another application or payload than the one to be written. Then its result answers
/// nobody.
fn is_of_other_work(write: &Write, found: &IdempotencyRecord) -> bool {
    let Some(ours) = &write.record else { return false };
    let is_foreign = found.application.is_some() && found.application != ours.application;
    let prints = ours.fingerprint.as_ref().zip(found.fingerprint.as_ref());
    is_foreign || prints.is_some_and(|(ours, theirs)| ours != theirs)
}

fn found(verdict: &Verdict) -> Option<&IdempotencyRecord> {
    match verdict {
        Verdict::Found(found) => found.as_ref(),
        _ => None,
    }
}

fn has_texts(record: &IdempotencyRecord) -> bool {
    Part::ALL.iter().any(|part| part.of(record).is_some())
}

/// The claim that sends a write.
fn owner(write: &Write) -> Option<Owner> {
    match write.guard {
        Guard::OwnedBy(owner) => Some(owner),
        _ => write.record.as_ref()?.owner,
    }
}

/// In place of a verdict that the inner store did not give.
fn unanswered() -> StoreError {
    let context = "the store gave fewer answers than it was asked for; run its conformance tests";
    StoreError::new(StoreErrorKind::Unavailable, context)
}
