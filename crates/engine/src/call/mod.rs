//! The call of a handler: what it says of the delivery, and what its clones share: its steps, and the messages that it
//! publishes. Each of these is made when it is first used, since most handlers use neither.

mod kept;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    effects::Collector,
    outbox::{PublishError, Publisher},
    record::{IdempotencyRecord, Json, Owner},
    store::StoreError,
};
use lambda_idempotency_keys::{Digest, Key};
use serde::Deserialize;

pub use crate::{delivered::RecordId, trace_context::TraceContext};

use crate::{
    delivered::{Delivered, Invocation, Messaging, RecordError},
    steps::{KeptSteps, Steps},
};

/// One call of a handler: for which key and record, what happened before, and how much time there
/// is; and the record as it was delivered, with its attributes.
///
/// ```
/// use lambda_idempotency_engine::call::Call;
/// let call = Call::test("o-1").with_failed_attempts(2);
/// assert_eq!((call.failed_attempts(), call.lost_attempts()), (2, 0));
/// ```
///
/// How much a call knows of the delivery depends on how the handler is called:
///
/// | | [`request_id`](Self::request_id) | [`receives`](Self::receives) | [`raw_record`](Self::raw_record), [`record_as`](Self::record_as) | [`attribute`](Self::attribute) |
/// |---|---|---|---|---|
/// | records of SQS, also through a pipe | yes | yes | yes | message attributes |
/// | of SNS | yes | | yes | message attributes |
/// | of Kafka, RabbitMQ | yes | | yes | headers |
/// | of ActiveMQ | yes | | yes | properties |
/// | of all other sources | yes | | yes | |
/// | `run` with a context, HTTP requests | yes | | | |
/// | `run` without a context | | | | |
///
/// A copy in the same batch is answered by the call for the first of them, which knows nothing of the
/// others.
#[derive(Clone)]
pub struct Call {
    subject: Subject,
    record: RecordId,
    history: History,
    handler_deadline: Option<Timestamp>,
    clock: Arc<dyn Clock>,
    delivered: Delivered,
    /// If its operation is transactional.
    effects: Option<Arc<Collector>>,
    steps: KeptSteps,
    /// Or why it cannot publish messages.
    publishes: Result<(), PublishError>,
    shared: Shared,
}

/// The work that a call is for.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) key: Option<Key>,
    /// Identifies a record without a key.
    pub(crate) identity: Option<Key>,
    /// The claim, if its key does not identify the work.
    pub(crate) attempt: Option<Owner>,
}

/// The attempts for a key before this call, and its fence.
#[derive(Clone, Copy)]
pub(crate) struct History {
    failed_attempts: u32,
    lost_attempts: u32,
    fence: u64,
}

impl History {
    pub(crate) const fn of(record: &IdempotencyRecord) -> Self {
        Self {
            failed_attempts: record.failed_attempts,
            lost_attempts: record.lost_attempts,
            fence: record.fence,
        }
    }

    /// The history of a record that is not claimed.
    pub(crate) const fn none(now: Timestamp) -> Self {
        Self { failed_attempts: 0, lost_attempts: 0, fence: now.as_millis() }
    }
}

impl Call {
    pub(crate) fn new(
        subject: Subject,
        record: RecordId,
        history: History,
        handler_deadline: Option<Timestamp>,
        clock: Arc<dyn Clock>,
        delivered: Delivered,
        shared: Shared,
    ) -> Self {
        Self {
            subject,
            record,
            history,
            handler_deadline,
            clock,
            delivered,
            effects: None,
            steps: KeptSteps::NotStored,
            publishes: Err(PublishError::NoSender),
            shared,
        }
    }

    pub(crate) fn with_steps(mut self, steps: KeptSteps) -> Self {
        self.steps = steps;
        self
    }

    pub(crate) const fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn collecting(mut self, effects: Option<Arc<Collector>>) -> Self {
        self.effects = effects;
        self
    }

    pub(crate) const fn collector(&self) -> Option<&Arc<Collector>> {
        self.effects.as_ref()
    }

    pub(crate) fn publishing(mut self, publishes: Result<(), PublishError>) -> Self {
        self.publishes = publishes;
        self
    }

    /// The hash of the idempotency key; `None` if the operation's policy let a record without a key
    /// run unprotected.
    #[must_use]
    pub fn key_hash(&self) -> Option<&str> {
        self.subject.key.as_ref().map(Key::hash)
    }

    /// The record that is processed.
    #[must_use]
    pub const fn record(&self) -> &RecordId {
        &self.record
    }

    /// How often a handler reported failure for this key before.
    #[must_use]
    pub const fn failed_attempts(&self) -> u32 {
        self.history.failed_attempts
    }

    /// How many earlier calls for this key disappeared: were killed, timed out, or lost the store.
    /// Their effects may have happened: **where this is not 0, check before acting again**.
    #[must_use]
    pub const fn lost_attempts(&self) -> u32 {
        self.history.lost_attempts
    }

    /// A number that rises from call to call of a key, for systems downstream that can refuse what
    /// comes from a lower one than they have seen: a worker that was stopped in the middle, and goes
    /// on after its key was taken over, then changes nothing there.
    ///
    /// It is the fence of the call before plus one, or the time of the claim in milliseconds since
    /// the epoch if that is more. While the record lives it rises whatever the clocks say. Once the
    /// record is gone (it expired, or an operator deleted it), only the clock makes it rise: by as
    /// much as clocks may differ, a later call can then have a lower fence than an earlier one. It
    /// orders the calls of *one* key, and says nothing between keys; in optimistic mode, where several may
    /// run at a time, it orders nothing. In mutex mode the record is gone after each call that ends: the fence is
    /// above that of every call which was lost and may still go on, as long as clocks differ by less than the
    /// clock skew, but may be below that of a call which has ended a moment ago. Without an idempotency key it
    /// is the time of the call.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    /// // UPDATE accounts SET balance = .., fence = $1 WHERE id = .. AND fence < $1
    /// assert!(Call::test("o-1").with_fence(7).fence() > 6);
    /// ```
    ///
    /// See Kleppmann, [How to do distributed locking][fencing].
    ///
    /// [fencing]: https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.history.fence
    }

    /// A key for one effect of this call, to be handed to a system that deduplicates by itself: the
    /// same in every attempt, another for each `name`, and for each idempotency key. 64 hexadecimal
    /// digits, which say nothing of the payload.
    ///
    /// It closes the gap that no record can: a worker that dies between an effect and its completion.
    /// Where the record has no idempotency key, it follows from the operation, the tenant, the record's
    /// source and id, and the payload. Two records of equal payload that have no id get the same
    /// subkeys: two calls of `run`, two messages of RabbitMQ. In mutex mode a key does not identify the work,
    /// so each attempt gets subkeys of its own.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    /// let call = Call::test("o-1");
    /// // payments.charge(amount).idempotency_key(call.subkey("charge")).send().await?;
    /// assert_eq!(call.subkey("charge"), Call::test("o-1").with_failed_attempts(3).subkey("charge"));
    /// assert_ne!(call.subkey("charge"), call.subkey("refund"));
    /// assert_ne!(call.subkey("charge"), Call::test("o-2").subkey("charge"));
    /// ```
    #[must_use]
    pub fn subkey(&self, name: &str) -> String {
        let mut digest = Digest::new(b"lambda-idempotency subkey 1");
        if let Some(subject) = self.subject.key.as_ref().or(self.subject.identity.as_ref()) {
            digest.part(subject.as_str().as_bytes());
        }
        if let Some(attempt) = self.subject.attempt {
            digest.part(&attempt.to_bits().to_be_bytes());
        }
        digest.part(name.as_bytes());
        digest.hex()
    }

    /// How often the source has delivered the record, this time included, if the source counts that:
    /// SQS does (`ApproximateReceiveCount`), also through a pipe; a program that calls `run` can say it. `None` otherwise.
    ///
    /// It counts deliveries, not attempts: a message that was received while another worker held its
    /// key, or behind one that failed, was not tried. Attempts are counted by
    /// [`failed_attempts`](Self::failed_attempts) and [`lost_attempts`](Self::lost_attempts).
    #[must_use]
    pub const fn receives(&self) -> Option<u32> {
        self.delivered.receive_count()
    }

    /// The record as JSON: what key expressions made with `record(..)` see, whatever the handler's
    /// payload is. That is the text that AWS delivers, byte for byte; of Kafka, the record with its key,
    /// value and headers as text. `None` if there is no record around the payload.
    ///
    /// **It holds the payload**: not for logs.
    #[must_use]
    pub fn raw_record(&self) -> Option<&str> {
        self.delivered.text()
    }

    /// The record, decoded: see [`raw_record`](Self::raw_record). The types of the
    /// `aws_lambda_events` crate fit, such as its `SqsMessage`, and so does a type with the few
    /// members that are needed. It is parsed each time.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    ///
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Message { message_id: String, attributes: Attributes }
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "PascalCase")]
    /// struct Attributes { sent_timestamp: String }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let call = Call::test("o-1").with_raw_record(
    /// #     r#"{"messageId":"m-1","attributes":{"SentTimestamp":"1767225600000"}}"#);
    /// let message: Message = call.record_as()?;
    /// let sent: u64 = message.attributes.sent_timestamp.parse()?;
    /// # assert_eq!((&*message.message_id, sent), ("m-1", 1_767_225_600_000));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no record, or it does not fit the type. The error says where, and holds
    /// none of its content.
    pub fn record_as<'c, T: Deserialize<'c>>(&'c self) -> Result<T, RecordError> {
        self.delivered.decode()
    }

    /// The text that the sender attached to the record beside the payload, by its name: a message attribute of
    /// SQS or SNS, a header of Kafka or RabbitMQ, a property of ActiveMQ. Where an SNS notification is
    /// taken out of a queue's message (`Envelope::Sns`), those of the notification, unless the message
    /// has one of that name itself.
    ///
    /// The value is its text: of a number its digits, of the bytes of an SQS or SNS attribute their
    /// base64, of a Kafka header that is there several times the last. `None` if there is no header of that
    /// name, or if it holds no text; [`raw_record`](Self::raw_record) has all of it. It is looked up in
    /// the record's text each time.
    #[doc(alias = "header")]
    #[doc(alias = "message_attribute")]
    #[doc(alias = "property")]
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<String> {
        self.delivered.attribute(name)
    }

    /// The id of the invocation, to find the call in its log: the same in each attempt of an
    /// asynchronous invocation, another for each batch of a queue or stream. `None` where no invocation
    /// is known: outside Lambda, and in tests that name none.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.delivered.invocation().map(Invocation::request_id)
    }

    /// The invocation, for the crate that made it; the `lambda-idempotency` crate's `CallExt::context`
    /// has Lambda's context.
    #[must_use]
    pub fn invocation(&self) -> Option<&dyn Invocation> {
        self.delivered.invocation()
    }

    /// The trace in which the record was sent, to continue it or to link to it:
    ///
    /// | of a record of | from |
    /// |---|---|
    /// | SQS, also through a pipe | the message attribute `traceparent` or, without one, X-Ray's system attribute `AWSTraceHeader` |
    /// | SNS | the message attribute `traceparent` or, without one, the trace header of the invocation |
    /// | Kafka, RabbitMQ, ActiveMQ | the header or property `traceparent` |
    /// | EventBridge, S3, Scheduler, a direct invocation, `run` with a context, HTTP | the trace header of the invocation, by which AWS hands the producer's trace on |
    ///
    /// `None` for other sources, and if there is none or if it is malformed. It is looked up each time.
    #[must_use]
    pub fn trace_context(&self) -> Option<TraceContext> {
        self.delivered.trace_context()
    }

    /// The record as OpenTelemetry's conventions describe it.
    pub(crate) fn messaging(&self) -> Option<Messaging<'_>> {
        self.delivered.described(&self.record)
    }

    /// When the handler is stopped. `None` in a call that a unit test has made.
    #[must_use]
    pub const fn handler_deadline(&self) -> Option<Timestamp> {
        self.handler_deadline
    }

    /// How much time is left until then.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.handler_deadline.map(|handler_deadline| handler_deadline.since(self.clock.now()))
    }
}

/// Without the record and its attributes, which hold the payload.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("key", &self.key_hash())
            .field("record", &self.record)
            .field("failed_attempts", &self.failed_attempts())
            .field("lost_attempts", &self.lost_attempts())
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}

/// The parts that one call has used so far.
#[derive(Default)]
struct Used {
    steps: Option<Arc<Steps>>,
    publisher: Option<Arc<Publisher>>,
    /// How long the completion is to answer.
    retention: Option<Duration>,
    /// The handler, to be polled when a step has ended.
    handler: Option<Waker>,
    /// The handler has ended: what is made after that is closed.
    has_ended: bool,
}

/// The parts that one call has used, for the call, its clones and the engine.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Used>>);

impl Shared {
    /// The store has this text of the steps.
    pub(crate) fn steps_are_in_store(&self, text: &Json) {
        if let Some(steps) = self.used_steps() {
            steps.are_in_store(text);
        }
    }

    /// The store keeps none of the steps that wait.
    pub(crate) fn steps_are_refused(&self, error: &StoreError) {
        if let Some(steps) = self.used_steps() {
            steps.are_refused(error);
        }
    }

    /// The steps, which are made now if nothing has used them.
    fn steps(&self, kept: &KeptSteps) -> Arc<Steps> {
        let mut used = self.used();
        if let Some(steps) = &used.steps {
            return Arc::clone(steps);
        }
        let steps = Steps::new(kept);
        if let Some(handler) = &used.handler {
            steps.polled_by(handler);
        }
        if used.has_ended {
            steps.end();
        }
        Arc::clone(used.steps.insert(steps))
    }

    /// The publisher, which is made now if nothing has used it.
    fn publisher(&self) -> Arc<Publisher> {
        let mut used = self.used();
        let has_ended = used.has_ended;
        let publisher = used.publisher.get_or_insert_default();
        if has_ended {
            publisher.close();
        }
        Arc::clone(publisher)
    }

    /// The completion is to answer for this long.
    fn retain_for(&self, retention: Duration) {
        self.used().retention = Some(retention);
    }

    /// How long the completion is to answer, if the call has said that.
    pub(crate) fn retention(&self) -> Option<Duration> {
        self.used().retention
    }

    /// Whether this thread polls the work of a step.
    fn are_steps_working(&self) -> bool {
        self.used_steps().is_some_and(|steps| steps.are_working())
    }

    /// The handler is polled by this task.
    pub(crate) fn polled_by(&self, handler: &Waker) {
        let mut used = self.used();
        used.handler = Some(handler.clone());
        if let Some(steps) = &used.steps {
            steps.polled_by(handler);
        }
    }

    /// The text of all steps, if one has ended since it was taken.
    pub(crate) fn take_steps(&self) -> Option<Json> {
        self.used_steps()?.take()
    }

    /// The handler has returned: returns the text of its messages, if it has published some.
    pub(crate) fn close(&self) -> Option<Json> {
        let publisher = {
            let mut used = self.used();
            used.has_ended = true;
            used.publisher.clone()?
        };
        publisher.close()
    }

    /// The handler has ended: what is left of it keeps no more steps.
    pub(crate) fn end(&self) {
        let steps = {
            let mut used = self.used();
            (used.has_ended, used.handler) = (true, None);
            used.steps.clone()
        };
        // Wakes those that wait, which is code of the user.
        if let Some(steps) = steps {
            steps.end();
        }
    }

    fn used_steps(&self) -> Option<Arc<Steps>> {
        self.used().steps.clone()
    }

    // A panic cannot leave it half-changed: nothing of the user runs under the lock.
    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use lambda_idempotency_core::outbox::{Message, PublishError};
    use serde_json::value::RawValue;

    use super::*;
    use crate::steps::{Begun, StepError};

    fn kept() -> KeptSteps {
        KeptSteps::Stored(None)
    }

    #[test]
    fn nothing_is_made_before_it_is_used_and_then_all_clones_have_it() {
        let (shared, next) = (Shared::default(), Shared::default());
        assert!(shared.used_steps().is_none() && shared.close().is_none());
        let clone = shared.clone();
        assert!(Arc::ptr_eq(&shared.steps(&kept()), &clone.steps(&kept())));
        assert!(Arc::ptr_eq(&shared.publisher(), &clone.publisher()));
        assert!(!Arc::ptr_eq(&shared.steps(&kept()), &next.steps(&kept())));
    }

    #[test]
    fn a_clone_that_outlives_the_handler_makes_nothing_that_is_open() {
        let shared = Shared::default();
        let clone = shared.clone();
        assert_eq!(shared.close(), None);
        shared.end();
        let late = clone.publisher().publish(&Message::new("q", "1"));
        assert_eq!(late, Err(PublishError::HandlerEnded));
        let late = clone.steps(&kept()).begin("late");
        assert!(matches!(late, Err(StepError::HandlerEnded { .. })));
    }

    #[test]
    fn a_message_of_a_clone_is_closed_with_the_handler() {
        let shared = Shared::default();
        shared.clone().publisher().publish(&Message::new("q", "1")).unwrap();
        assert_eq!(shared.close().as_deref(), Some(r#"[{"body":"1","to":"q"}]"#));
        assert_eq!(shared.close(), None);
    }

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Steps that another task makes while the handler waits for it: without the wake, nobody would store them.
    #[test]
    fn the_handler_is_woken_by_a_step_that_is_made_after_it_was_polled() {
        let (shared, woken) = (Shared::default(), Arc::new(Count(AtomicUsize::new(0))));
        shared.polled_by(&Waker::from(Arc::clone(&woken)));
        let Ok(Begun::Calls(called)) = shared.steps(&kept()).begin("one") else { panic!() };
        let mut ended = Box::pin(called.ended(RawValue::from_string("1".to_owned()).unwrap()));
        let mut context = std::task::Context::from_waker(Waker::noop());
        assert!(ended.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(shared.take_steps().as_deref(), Some(r#"{"one":1}"#));
    }
}
