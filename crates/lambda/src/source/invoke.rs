//! Direct invocation: any JSON, whose caller gets the handler's result. Lambda repeats an asynchronous one
//! (`InvocationType: Event`) if the function returns an error.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html>

use std::borrow::Cow;

use lambda_idempotency_engine::call::RecordId;
use serde_json::Value;

use super::{
    contract::{About, EventSource, Parts, Source, sealed},
    event::Event,
    record::Record,
    settings::{self, Answer, Settings},
};
use crate::rejection::Rejection;

/// Every event that no other source of the function recognises, wherever this one is registered: invocations with your own
/// JSON, and those of services that wait for an answer. The payload is the whole event.
///
/// **The caller gets the handler's result**, and so does the caller of a duplicate: a result that is not `()` is kept with the
/// completion of its key, as with [`keep_result`](crate::handler::keep_result). If the handler fails, the invocation fails with a
/// [`RunError`](crate::RunError); [`Failure::answering`](crate::Failure::answering) gives an answer in place of the error.
///
/// Batches that a poller delivers (of SQS, a stream, Kafka or a pipe) are refused: register the type of their source.
///
/// There is no default key, because an event alone does not show which invocations are duplicates: choose one, such as
/// `.key("paymentId")` (`"@"` is the whole event), or say [`Invoke::by_request_id`]. The
/// [guide](crate::guide::sources::invoke) has a key for each service that invokes functions.
///
/// ```
/// use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation, source::Invoke, testing};
/// use serde_json::{Value, json};
///
/// async fn charge(payment: Value, call: Call) -> Result<Value, Failure> {
///     Ok(json!({ "receipt": format!("r-{}", payment["paymentId"]) }))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let idempotency = Idempotency::new(MemoryStore::new());
/// let charge_once = Operation::new("charge").key("paymentId");
/// let function = idempotency.on(Invoke::new(), &charge_once, charge)?;
/// // function.serve().await
/// for _ in 0..2 {
///     let answer = testing::invoke(&function, &json!({ "paymentId": 7 })).await?;
///     assert_eq!(answer, json!({ "receipt": "r-7" }));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a source does nothing until it is given to `.on(..)`"]
pub struct Invoke(#[doc(hidden)] pub Settings);

impl Invoke {
    /// With every setting at its default. The operation, or this source, has to have a key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells events apart by the request id of their invocation, which Lambda keeps when it tries an **asynchronous** invocation
    /// again. A caller that waits for the answer has a new request id each time that it tries again: its duplicates are not
    /// recognised.
    pub fn by_request_id() -> Self {
        Self(Settings { by_request_id: true, ..Settings::default() })
    }

    /// Makes each answer, that of a duplicate too, from the result and the event that is answered: for callers that want
    /// something of their own event back, such as the `invocationId` of S3 Batch Operations. Default: the result.
    ///
    /// ```
    /// use lambda_idempotency::source::Invoke;
    /// use serde_json::json;
    ///
    /// let tasks = Invoke::new().answer(|result, event| {
    ///     json!({ "invocationSchemaVersion": "1.0", "invocationId": event["invocationId"], "results": [result] })
    /// });
    /// ```
    ///
    /// Its additions are not stored. It is not called for errors. If it panics, the invocation fails with
    /// [`ResultLost::NoAnswer`](crate::error::ResultLost::NoAnswer), because the work is done. Numbers of the result that are
    /// neither integers of 64 bits nor exact as `f64` lose digits.
    pub fn answer(mut self, make: impl Fn(Value, &Value) -> Value + Send + Sync + 'static) -> Self {
        self.0.set("answer", |all| &mut all.answer, Answer::new(make));
        self
    }
}

settings::group!(common Invoke);

impl sealed::Sealed for Invoke {
    fn parts(self) -> Parts {
        Parts { events: Box::new(InvokeEvents), settings: self.0 }
    }
}

impl Source for Invoke {}

/// Reads its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InvokeEvents;

const NAME: &str = "invoke";

impl EventSource for InvokeEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "the invocation's request id",
            catches: "retries by Lambda of an asynchronous invocation",
            misses: "a caller that invokes twice",
            volatile: &[],
            is_cause_of_invocation: true,
        }
    }

    fn answers_its_caller(&self) -> bool {
        true
    }

    fn recognises(&self, _: &Event<'_>, _: &Settings) -> bool {
        true
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        let id = event.request_id;
        let identity = match id {
            "" => Err(Rejection::NoRequestId),
            id => Ok(vec![Cow::Borrowed(NAME), Cow::Borrowed(id)]),
        };
        let payload = Ok(Cow::Borrowed(event.raw.get()));
        vec![Record { identity, ..Record::new(RecordId::new(NAME, id), event.raw, payload) }]
    }
}
