//! Handlers: async functions of a decoded payload.

use std::{
    future::Future,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use lambda_idempotency_core::failure::Failure;
use lambda_idempotency_engine::{
    batch::{Job, Returned},
    call::Call,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    decode::{Format, decode},
    rejection::Rejection,
};

mod sealed {
    /// An argument that no other crate can name, so that none can implement the traits with it.
    #[derive(Clone, Copy, Debug)]
    pub struct Sealed;
}

use sealed::Sealed;

/// An async function of a payload and a [`Call`]: `async fn(T, Call) -> Result<_, E>`.
///
/// `T` is decoded from the record's payload. Where that is the text of a producer (SQS body, SNS message, data of
/// Kinesis, Kafka and brokers), every type whose `Deserialize` asks for a string and accepts the text gets it exactly,
/// whether it happens to be JSON or not: a `String`, a `PathBuf`, a type of your own around one, also with
/// `#[serde(try_from = "String")]`. `"17"` keeps its quotes. Any other type is read from JSON.
///
/// Any standard error type can be returned; a [`Failure`] can also be permanent. The function's result is discarded,
/// because queues and streams do not read it; [`keep_result`] keeps it in the store.
///
/// Only such functions, and those that [`keep_result`] wraps, are handlers: the trait is sealed, so
/// that it can get more methods.
///
/// What the compiler refuses, and why:
///
/// * one argument: the [`Call`] is always given, `_: Call` where it is not needed;
/// * a payload that borrows, such as `&str`: `T` has to own its data, because the handler may
///   outlive the event;
/// * a future that is not `Send`: an `Rc`, or the guard of a `Mutex`, is held across an `.await`;
/// * anything but a `Result`, or an error type that is not a standard error: see [`HandlerResult`].
///
/// ```compile_fail
/// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
/// async fn place(order: String) -> Result<(), std::io::Error> { Ok(()) } // no `Call`
/// Idempotency::new(MemoryStore::new()).sqs(Operation::new("place"), place);
/// ```
///
/// ```compile_fail
/// # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation};
/// async fn place(order: String, call: Call) {} // no `Result`
/// Idempotency::new(MemoryStore::new()).sqs(Operation::new("place"), place);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot handle records: it is not a function",
    label = "not an async function",
    note = "a handler is `async fn(T, Call) -> Result<_, E>`, with a payload `T: DeserializeOwned + Send` and a \
            `lambda_idempotency::Call`; give the function itself, without calling it"
)]
pub trait Handler<T>: Send + Sync + 'static {
    #[doc(hidden)]
    fn call(
        &self,
        payload: T,
        call: Call,
        sealed: Sealed,
    ) -> impl Future<Output = Result<Returned, Failure>> + Send;
}

impl<F, T, Fut> Handler<T> for F
where
    F: Fn(T, Call) -> Fut + Send + Sync + 'static,
    T: Send,
    Fut: Future<Output: HandlerResult> + Send,
{
    fn call(
        &self,
        payload: T,
        call: Call,
        _: Sealed,
    ) -> impl Future<Output = Result<Returned, Failure>> + Send {
        let running = self(payload, call);
        async move { running.await.into_result(Sealed).map(|_| Returned::Nothing) }
    }
}

/// What a handler returns: a `Result` whose error converts to a [`Failure`]. It is a sealed trait
/// so that the compiler can explain what is expected where a handler returns another type.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "this returns `{Self}`",
    note = "a handler returns `Result<_, E>`, where `E` is `lambda_idempotency::Failure`, a type that implements \
            `std::error::Error + Send + Sync`, a boxed one of these, or a `String`"
)]
pub trait HandlerResult {
    #[doc(hidden)]
    type Value;

    #[doc(hidden)]
    fn into_result(self, sealed: Sealed) -> Result<Self::Value, Failure>;
}

// Without this the compiler would list each missing conversion instead of the note above.
#[diagnostic::do_not_recommend]
impl<R, E: Into<Failure>> HandlerResult for Result<R, E> {
    type Value = R;

    fn into_result(self, _: Sealed) -> Result<R, Failure> {
        self.map_err(Into::into)
    }
}

/// A handler whose results are kept; made by [`keep_result`].
#[derive(Clone, Copy, Debug)]
pub struct KeepResult<F>(F);

/// Keeps what `handler` returns, as JSON in the completion of its key, for the operation's
/// retention.
///
/// Observers see it in each [`Outcome`](crate::Outcome::result), also for duplicates, and
/// [`Idempotency::kept_result`](crate::Idempotency::kept_result) reads it later, by the key of a
/// payload. It needs no additional requests: a batch is still claimed together and completed
/// together. The result takes space in the store; on DynamoDB its completion and the claim of each
/// duplicate cost a write unit for each further KiB. A result that is too large for the store (400
/// KB in DynamoDB) or cannot be serialized is left out: the work counts as done, and the log
/// contains a warning ([`ResultKept`](crate::ResultKept)).
///
/// ```
/// use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation, keep_result, testing};
/// use serde_json::{Value, json};
///
/// async fn place(order: Value, call: Call) -> Result<String, Failure> {
///     Ok("order 17".to_owned())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let idempotency = Idempotency::new(MemoryStore::new());
/// let operation = Operation::new("place-order").key("orderId");
/// let function = idempotency.sqs(operation.clone(), keep_result(place))?;
/// # let message = json!({
/// #     "messageId": "m-1", "eventSource": "aws:sqs",
/// #     "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
/// #     "body": r#"{"orderId":"o-1"}"#,
/// # });
/// # testing::invoke(&function, &json!({ "Records": [message] })).await?;
/// // Later, where the result is wanted:
/// let placed = idempotency.kept_result(&operation, &json!({ "orderId": "o-1" })).await?;
/// assert_eq!(placed, Some("order 17".to_owned()));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub const fn keep_result<F>(handler: F) -> KeepResult<F> {
    KeepResult(handler)
}

#[diagnostic::do_not_recommend]
impl<F, T, Fut> Handler<T> for KeepResult<F>
where
    F: Fn(T, Call) -> Fut + Send + Sync + 'static,
    T: Send,
    Fut: Future<Output: HandlerResult<Value: Serialize>> + Send,
{
    fn call(
        &self,
        payload: T,
        call: Call,
        _: Sealed,
    ) -> impl Future<Output = Result<Returned, Failure>> + Send {
        let running = self.0(payload, call);
        async move { running.await.into_result(Sealed).map(|result| serialized(&result)) }
    }
}

/// Serializes a result. The work is done at this point, so a `Serialize` that fails or panics must
/// not cause a retry.
pub(crate) fn serialized<R: Serialize>(result: &R) -> Returned {
    match catch_unwind(AssertUnwindSafe(|| serde_json::to_string(result))) {
        Ok(Ok(json)) => Returned::Value(json.into()),
        Ok(Err(_)) | Err(_) => Returned::Unserializable,
    }
}

/// A handler without its payload type. It decodes first, so that a record that cannot be decoded
/// never claims its key.
pub(crate) trait ErasedHandler: Send + Sync {
    fn job<'j>(self: Arc<Self>, payload: &str, format: Format) -> Result<Job<'j>, Rejection>;
}

pub(crate) struct Typed<H, T> {
    handler: H,
    payload: PhantomData<fn() -> T>,
}

impl<H, T> Typed<H, T> {
    pub(crate) fn new(handler: H) -> Self {
        Self { handler, payload: PhantomData }
    }
}

impl<H, T> ErasedHandler for Typed<H, T>
where
    H: Handler<T>,
    T: DeserializeOwned + Send + 'static,
{
    fn job<'j>(self: Arc<Self>, payload: &str, format: Format) -> Result<Job<'j>, Rejection> {
        let payload: T = decode(payload, format)?;
        Ok(Box::new(move |call| {
            Box::pin(async move { self.handler.call(payload, call, Sealed).await })
        }))
    }
}
