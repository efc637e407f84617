//! Sends the messages that are left in a store.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    calling::{self, in_one_call},
    message::{OutboxError, OutgoingMessage, messages},
    sender::{SendError, Sender, run_length},
};
use crate::{
    browse::{Browse, Cursor, Left, Swept},
    clock::{Clock, SystemClock, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{RecordVersion, StoreError},
    sweep::{CALL, Sweep},
};

/// Sends the messages of completed records that no delivery has sent: the worker died after its completion, and
/// the source does not deliver the record again, as after an HTTP request whose caller does not repeat it, or a
/// message that went to a dead-letter queue.
///
/// Run it from a function with a schedule. Each run reads what is left in the store ([`Browse::left`]), which is all of it
/// where it has no index, or as far as its deadline allows, and takes the messages that it has sent from their records. It is safe beside deliveries and beside
/// other relays: if two send a message, they send it with the same id. Build its store with the settings of the functions,
/// for DynamoDB also with their form of results.
///
/// ```
/// use lambda_idempotency_core::{
///     clock::Timestamp, key::Key, memory::MemoryStore,
///     outbox::{MemorySender, Relay},
///     record::{IdempotencyRecord, Status},
/// };
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (store, sender) = (Arc::new(MemoryStore::new()), Arc::new(MemorySender::new()));
/// let deadline = Timestamp::from_secs(4_000_000_000);
/// let mut record = IdempotencyRecord::new(Status::Completed, deadline);
/// record.outbox = Some(r#"[{"to":"parcels","body":"{}"}]"#.into());
/// store.insert(Key::from_text("place-order#1"), record);
///
/// let relay = Relay::new(Arc::clone(&store), Arc::clone(&sender));
/// let relayed = relay.run(None, deadline).await?;
/// assert_eq!((relayed.sent, sender.sent().len()), (1, 1));
/// assert_eq!(relay.run(None, deadline).await?.sent, 0, "the record says that they are sent");
/// # Ok(())
/// # }
/// ```
pub struct Relay<S> {
    store: S,
    sender: Arc<dyn Sender>,
    clock: Arc<dyn Clock>,
    min_age: Duration,
    application: Option<Arc<str>>,
}

/// The work of one run of a [`Relay`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Relayed {
    /// Records whose messages were all sent.
    pub sent: u64,
    /// Records with a message that could not be sent. A later run tries again.
    pub unsent: u64,
    /// Records whose messages were all sent, but the store did not say that this was recorded. A later run may send
    /// them again.
    pub unrecorded: u64,
    /// The first error of a message that could not be sent.
    pub error: Option<SendError>,
    /// How far it came.
    pub swept: Swept,
}

/// One record, and those of its messages that are not sent yet.
struct Unsent {
    key: Key,
    record: IdempotencyRecord,
    messages: Vec<OutgoingMessage>,
}

impl Unsent {
    /// Its messages that can be in its next call.
    fn next(&self) -> &[OutgoingMessage] {
        self.messages.get(..run_length(&self.messages)).unwrap_or_default()
    }
}

impl<S> Relay<S> {
    /// A relay that finds messages in this store and sends them by this sender.
    #[must_use]
    pub fn new(store: S, sender: impl Sender) -> Self {
        let (sender, clock) = (Arc::new(sender), Arc::new(SystemClock));
        Self { store, sender, clock, min_age: Duration::from_secs(15 * 60), application: None }
    }

    /// Sends only the messages of this application, and of records that name none. Set it if applications with
    /// different senders share the store: a destination such as `parcels` may be another queue to each of them, and
    /// messages that are sent to the wrong one are marked as sent. Default: the messages of all applications.
    #[must_use]
    pub fn with_application(self, name: impl Into<Arc<str>>) -> Self {
        Self { application: Some(name.into()), ..self }
    }

    /// Reads the time from this clock. Default: the system's.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Leaves records alone that were claimed less than this ago: their worker may be sending. Default: 15
    /// minutes, the longest time of an invocation. A record that does not say when it was claimed is not left
    /// alone.
    #[must_use]
    pub fn with_min_age(self, min_age: Duration) -> Self {
        Self { min_age, ..self }
    }
}

impl<S: Browse> Relay<S> {
    /// Goes through the store from `from`, or from its beginning, until its end or `deadline`.
    ///
    /// # Errors
    /// A page of the store could not be read. Messages that were sent before are recorded.
    pub async fn run(
        &self,
        from: Option<&Cursor>,
        deadline: Timestamp,
    ) -> Result<Relayed, StoreError> {
        let mut relayed = Relayed::default();
        let mut sweep = Sweep::new(&self.store, &*self.clock, Left::Messages, from, Some(deadline));
        while let Some(page) = sweep.page().await? {
            let mut left = Vec::new();
            for (key, record) in page.into_iter().filter(|(_, record)| self.is_left(record)) {
                match messages(&key, &record) {
                    Ok(messages) => left.push(Unsent { key, record, messages }),
                    Err(OutboxError) => sweep.swept.unreadable += 1,
                }
            }
            let sent = self.send(left, &sweep, &mut relayed).await;
            self.record(sent, &mut relayed).await;
        }
        Ok(Relayed { swept: sweep.swept, ..relayed })
    }

    /// Whether the record has messages that this relay sends and no worker is sending.
    fn is_left(&self, record: &IdempotencyRecord) -> bool {
        let claimed_at = record.provenance.as_ref().map(|provenance| provenance.claimed_at);
        let is_old = claimed_at.is_none_or(|then| then.plus(self.min_age) <= self.clock.now());
        is_old && self.serves(record.application.as_ref())
    }

    fn serves(&self, application: Option<&Arc<str>>) -> bool {
        match (&self.application, application) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        }
    }

    /// Sends the messages of these records, in rounds that keep the order of each record. Returns the records of
    /// which all were sent.
    async fn send(
        &self,
        mut left: Vec<Unsent>,
        sweep: &Sweep<'_, S>,
        relayed: &mut Relayed,
    ) -> Vec<Unsent> {
        let mut sent = Vec::new();
        while !left.is_empty() {
            let members: Vec<_> =
                left.drain(..in_one_call(left.iter().map(Unsent::next))).collect();
            let call: Vec<_> = members.iter().flat_map(Unsent::next).cloned().collect();
            let until = sweep.call_deadline();
            let answers = calling::send(&*self.sender, &*self.clock, &call, until).await;
            let mut answers = answers.into_iter();
            for mut one in members {
                let members = one.next().len();
                let failed = answers.by_ref().take(members).filter_map(Result::err).last();
                one.messages.drain(..members);
                match failed {
                    Some(error) => {
                        relayed.unsent += 1;
                        relayed.error.get_or_insert(error);
                    }
                    None if one.messages.is_empty() => sent.push(one),
                    None => left.push(one),
                }
            }
        }
        sent
    }

    /// Records that the messages of these records are sent.
    async fn record(&self, sent: Vec<Unsent>, relayed: &mut Relayed) {
        if sent.is_empty() {
            return;
        }
        let records = sent.iter().map(|sent| (sent.key.clone(), RecordVersion::of(&sent.record)));
        let records: Vec<_> = records.collect();
        // The messages are sent, so this is worth a call even if the time is over.
        let until = self.clock.now().plus(CALL);
        let answers = self.store.mark_sent(&records, until).await;
        for at in 0..records.len() {
            match answers.get(at) {
                Some(Ok(())) => relayed.sent += 1,
                _ => relayed.unrecorded += 1,
            }
        }
    }
}

impl<S> fmt::Debug for Relay<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("min_age", &self.min_age).finish_non_exhaustive()
    }
}
