//! Effects and messages of a call, which are part of the completion of its key, how long that answers, and the steps that are
//! kept before. And calls as tests make them, with what the crate above sets in the calls that it makes.

use std::{
    any::{Any, type_name},
    sync::Arc,
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{SystemClock, Timestamp},
    effects::{CollectError, Collector, EffectsKind},
    failure::Failure,
    outbox::{Message, PublishError, Publisher},
};
use lambda_idempotency_keys::Key;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{Call, History, RecordId, Shared, Subject, TraceContext};
use crate::{
    delivered::{Delivered, Invocation},
    steps::{Begun, StepError},
};

/// # Steps
impl Call {
    /// Runs a part of the handler's work once per key: the first attempt that gets there calls `work` and
    /// keeps what it returned with the claim; later attempts get that and do not call `work` again.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    /// use lambda_idempotency_core::failure::Failure;
    ///
    /// # async fn charge(amount: u32, key: &str) -> Result<String, std::io::Error> { Ok(format!("ch-{amount}")) }
    /// # async fn ship(charge: &str) -> Result<(), std::io::Error> { Ok(()) }
    /// async fn place(amount: u32, call: Call) -> Result<(), Failure> {
    ///     let charge = call
    ///         .step("charge", |key| async move { Ok(charge(amount, &key).await?) })
    ///         .await?;
    ///     // If this fails, the next attempt comes back here with the same charge.
    ///     call.step("ship", |_| async { Ok(ship(&charge).await?) }).await
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// place(7, Call::test("o-1")).await.unwrap();
    /// place(7, Call::test("o-1").with_step("charge", "ch-1")).await.unwrap();
    /// # }
    /// ```
    ///
    /// The step returns when the store has its result, so what comes after it relies on it. **A worker that
    /// dies between the effect and that write runs the step again.** `work` therefore gets the
    /// [`subkey`](Self::subkey) of the step's name, the same in every attempt: pass it to the other system
    /// as *its* idempotency key, and the effect happens once there, too.
    ///
    /// * **An error is not kept**: the handler decides what follows, and the next attempt calls the step
    ///   again. In the same attempt a step that failed, or was dropped before its work had returned, can be
    ///   called again.
    /// * **Names**: 1 to 64 visible ASCII characters, each once in an attempt. Steps may run at the same time.
    /// * **Results** are JSON. A result is read back from that, the first time, too. At most
    ///   [`MAX_STEPS`](crate::steps::MAX_STEPS) of them are kept for a key, with
    ///   [`MAX_STEP_BYTES`](crate::steps::MAX_STEP_BYTES) together.
    /// * **Effects and messages** of the call ([`collect`](Self::collect), [`publish`](Self::publish)) are
    ///   refused in `work`, since an attempt that does not call it would be completed without them. Add them
    ///   after the step.
    /// * **They are kept** until the key is completed or the record expires. With
    ///   fingerprints, another payload cannot have them: it is a mismatch while they are kept.
    /// * **Cost**: a write of the record for each step, or for several that end at the same time, and each
    ///   write of the record until its completion is larger by the results.
    ///
    /// Without a claim (a record without a key, or an outage, where a policy runs it unprotected) nothing is
    /// kept, and each attempt calls the step.
    ///
    /// # Errors
    /// The error of `work`, or a [`StepError`].
    pub async fn step<T, F, Fut>(&self, name: &str, work: F) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce(String) -> Fut,
        Fut: Future<Output = Result<T, Failure>>,
    {
        let steps = self.shared.steps(&self.steps);
        match steps.begin(name)? {
            Begun::Before(result) => read(name, &result),
            Begun::Calls(mut called) => {
                let work = steps.working(|| work(self.subkey(name)));
                let returned = work.await.map(|value| to_raw_value(&value))?;
                called.has_run();
                let result = returned
                    .map_err(|_| StepError::Unserializable { name: Arc::clone(called.name()) })?;
                called.ended(result.clone()).await?;
                read(name, &result)
            }
        }
    }

    /// As if an attempt before had run this step, and it had returned this.
    ///
    /// # Panics
    /// If the result cannot be written as JSON.
    #[must_use]
    pub fn with_step(self, name: &str, result: impl Serialize) -> Self {
        #[expect(clippy::expect_used, reason = "for tests, where the value is a literal")]
        let result = to_raw_value(&result).expect("the result of a step is written as JSON");
        self.shared.steps(&self.steps).set(name, result);
        self
    }
}

/// Reads what is kept of a step. An error of serde quotes what it read, so only the place is said.
fn read<T: DeserializeOwned>(name: &str, result: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(result.get()).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        StepError::Mismatch { name: name.into(), expected: type_name::<T>(), line, column }.into()
    })
}

/// # Effects
impl Call {
    /// Collects effects of a type that the store commits: `add` is called with all effects of this call so
    /// far, which begin as the default of their type. Nothing is sent. When the handler has returned
    /// `Ok`, they are committed in one transaction with the completion of the key: both or neither.
    /// Otherwise they are dropped.
    ///
    /// Stores have methods with better names for their effects: `transact` for DynamoDB.
    ///
    /// ```
    /// use lambda_idempotency_core::{effects::CollectError, memory::MemoryEffects};
    /// use lambda_idempotency_engine::call::Call;
    ///
    /// let (call, collected) = Call::test("o-1").with_effects::<MemoryEffects>();
    /// call.collect(|effects: &mut MemoryEffects| effects.add(|| println!("placed")))?;
    /// assert!(collected.close()?.is_some());
    ///
    /// let plain = Call::test("o-1").collect(|_: &mut MemoryEffects| ());
    /// assert_eq!(plain, Err(CollectError::NotTransactional));
    /// # Ok::<(), CollectError>(())
    /// ```
    ///
    /// # Errors
    /// The operation is not transactional, the call runs without a claim, the store commits effects of
    /// another type, or the handler has ended; or this is called in the work of a [step](Self::step), which
    /// later attempts do not call; or inside an `add`, or an earlier `add` panicked, and then the attempt
    /// fails, whatever the handler returns.
    pub fn collect<T, R>(&self, add: impl FnOnce(&mut T) -> R) -> Result<R, CollectError>
    where
        T: Default + Any + Send + Sync,
    {
        let effects = self.effects.as_ref().ok_or(CollectError::NotTransactional)?;
        if self.shared.are_steps_working() {
            return Err(CollectError::InStep);
        }
        effects.collect(add)
    }

    /// As if its operation were transactional, and its store committed effects of type `T`. The
    /// collector that is returned has what the handler collects; close it to look.
    #[must_use]
    pub fn with_effects<T: Any + Send + Sync>(self) -> (Self, Arc<Collector>) {
        let effects = Arc::new(Collector::new(EffectsKind::of::<T>()));
        (self.collecting(Some(Arc::clone(&effects))), effects)
    }
}

/// # Messages
impl Call {
    /// Publishes a message: it is stored with the completion of the key, in the same write, and sent after that,
    /// before the delivery is acknowledged. If the handler fails, nothing is sent.
    ///
    /// A worker that dies between the two leaves the message in the store, and the next delivery sends it without
    /// calling the handler again. A message may be sent more than once, always with the same
    /// [id](lambda_idempotency_core::outbox::OutgoingMessage::id). Messages of one call are sent in the order in
    /// which they were published: one that cannot be sent holds up those behind it.
    ///
    /// ```
    /// use lambda_idempotency_core::outbox::{Message, PublishError};
    /// use lambda_idempotency_engine::call::Call;
    ///
    /// let (call, published) = Call::test("o-1").with_publisher();
    /// call.publish(Message::new("parcels", r#"{"order":"o-1"}"#))?;
    /// assert_eq!(published.published()[0].destination(), "parcels");
    ///
    /// let plain = Call::test("o-1").publish(Message::new("parcels", "{}"));
    /// assert_eq!(plain, Err(PublishError::NoSender));
    /// # Ok::<(), PublishError>(())
    /// ```
    ///
    /// # Errors
    /// There is no sender, the call runs without a claim, the message is not complete, there are too many messages
    /// or bytes, or the handler has ended; or this is called in the work of a [step](Self::step), which later
    /// attempts do not call.
    // By value, as a sender's methods take messages: few callers need theirs afterwards.
    #[expect(clippy::needless_pass_by_value, reason = "a message that is published is given away")]
    pub fn publish(&self, message: Message) -> Result<(), PublishError> {
        self.publishes?;
        if self.shared.are_steps_working() {
            return Err(PublishError::InStep);
        }
        self.shared.publisher().publish(&message)
    }

    /// As if there were a sender. The publisher that is returned has what the handler publishes.
    #[must_use]
    pub fn with_publisher(self) -> (Self, Arc<Publisher>) {
        let publisher = self.shared.publisher();
        (self.publishing(Ok(())), publisher)
    }
}

/// # Retention
impl Call {
    /// Lets the completion of this key answer for this long, instead of the operation's retention: a quote that is valid for
    /// ten minutes, a payment link until it expires. The last call counts, and only if the handler returns `Ok`.
    ///
    /// **The operation's retention is the maximum**; a longer time is cut to it. Whoever changes a key format, rotates a
    /// secret, renames an operation or deploys another mode waits for that time, and no record outlives it. So set the
    /// operation's retention to the longest time that any of its records needs. A duplicate that comes after the
    /// shorter time is processed again. In optimistic mode a completion answers for 15 minutes at least, because until
    /// then it is what excludes an attempt whose request is still under way.
    ///
    /// [Subkeys](Self::subkey) and the ids of [messages](Self::publish) are the same when it is processed again. A system
    /// that remembers them for longer takes the new work for the old.
    ///
    /// **Not less than the time in which the work may be delivered again**: a delivery whose acknowledgement was lost runs the
    /// handler again once its key answers no longer, and commits its effects again. For a queue, that is some visibility
    /// timeouts.
    ///
    /// It has no effect on a call that [publishes](Self::publish), because its messages may have to be sent later, nor where
    /// nothing is recorded: in mutex mode, and without a claim. Released, lost and permanently
    /// failed attempts are remembered as long as the operation says.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency_engine::call::Call;
    ///
    /// # struct Quote { valid_for: Duration }
    /// async fn quote(quote: Quote, call: Call) -> Result<(), std::io::Error> {
    ///     call.retain_for(quote.valid_for);
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), std::io::Error> {
    /// // The unit test of such a handler:
    /// let call = Call::test("q-1");
    /// quote(Quote { valid_for: Duration::from_mins(10) }, call.clone()).await?;
    /// assert_eq!(call.retained_for(), Some(Duration::from_mins(10)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn retain_for(&self, retention: Duration) {
        self.shared.retain_for(retention);
    }

    /// The time with which [`retain_for`](Self::retain_for) was called last, for the unit test of a handler.
    #[must_use]
    pub fn retained_for(&self) -> Option<Duration> {
        self.shared.retention()
    }
}

impl Call {
    /// A call for the unit test of a handler: the first for a key made of `name`, no deadline.
    #[must_use]
    pub fn test(name: &str) -> Self {
        let key = Some(Key::from_text(format!("test#{name}")));
        let history = History::none(Timestamp::from_millis(1));
        let subject = Subject { key, identity: None, attempt: None };
        let (record, clock) = (RecordId::new("test", name), Arc::new(SystemClock));
        Self::new(subject, record, history, None, clock, Delivered::default(), Shared::default())
    }

    /// As if the handler had failed this often before.
    #[must_use]
    pub const fn with_failed_attempts(mut self, failed_attempts: u32) -> Self {
        self.history.failed_attempts = failed_attempts;
        self
    }

    /// As if this many earlier calls had disappeared.
    #[must_use]
    pub const fn with_lost_attempts(mut self, lost_attempts: u32) -> Self {
        self.history.lost_attempts = lost_attempts;
        self
    }

    /// As if the call had this fence; a test call's is 1.
    #[must_use]
    pub const fn with_fence(mut self, fence: u64) -> Self {
        self.history.fence = fence;
        self
    }

    /// As if the handler were stopped at `handler_deadline`.
    #[must_use]
    pub const fn with_handler_deadline(mut self, handler_deadline: Timestamp) -> Self {
        self.handler_deadline = Some(handler_deadline);
        self
    }

    /// As if it belonged to this invocation.
    // For `lambda-idempotency`, which has the invocation.
    #[doc(hidden)]
    #[must_use]
    pub fn with_invocation(mut self, invocation: Arc<dyn Invocation>) -> Self {
        self.delivered.set_invocation(invocation);
        self
    }

    /// As if its record had been received this often, this time included.
    #[must_use]
    pub fn with_receives(mut self, receives: u32) -> Self {
        self.delivered = self.delivered.receives(Some(receives));
        self
    }

    /// As if its record were this JSON. [`attribute`](Self::attribute) does not look into it: set
    /// what the handler asks for with [`with_attribute`](Self::with_attribute).
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    /// let call = Call::test("o-1").with_raw_record(r#"{"messageId":"m-1"}"#);
    /// let message: serde_json::Value = call.record_as().unwrap();
    /// assert_eq!(message["messageId"], "m-1");
    /// ```
    #[must_use]
    pub fn with_raw_record(mut self, json: &str) -> Self {
        self.delivered.set_record(json);
        self
    }

    /// As if its record had been sent in this trace.
    #[must_use]
    pub fn with_trace_context(mut self, context: TraceContext) -> Self {
        self.delivered.set_trace_context(context);
        self
    }

    /// As if its record had this attribute.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    /// let call = Call::test("o-1").with_attribute("tenant", "acme");
    /// assert_eq!(call.attribute("tenant").as_deref(), Some("acme"));
    /// assert_eq!(call.attribute("trace"), None);
    /// ```
    #[must_use]
    pub fn with_attribute(mut self, name: &str, value: &str) -> Self {
        self.delivered.set_attribute(name, value);
        self
    }
}
