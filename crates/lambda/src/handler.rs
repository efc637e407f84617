//! Handlers: async functions of a decoded payload. And their results, on the way to the caller.

use std::{
    any::TypeId,
    future::Future,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use lambda_idempotency_core::{clock::BoxFuture, failure::Failure, outcome::Outcome, record::Json};
use lambda_idempotency_engine::{
    batch::{Job, Returned},
    call::Call,
};
use sealed::Internal;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    decode::{Format, decode},
    error::{ResultLost, RunError},
    rejection::Rejection,
};

mod sealed {
    /// An argument that no other crate can name, so that none can implement the traits with it.
    #[derive(Clone, Copy, Debug)]
    pub struct Internal;
}

/// The payload of a handler: every type that owns its data, is `Send` and can be deserialized.
///
/// Where the payload is the text of a producer (SQS body, SNS message, data of Kinesis, Kafka and brokers), every type whose
/// `Deserialize` asks for a string and accepts the text gets it exactly, whether it happens to be JSON or not: a `String`, a
/// `PathBuf`, a type of your own around one, also with `#[serde(try_from = "String")]`. `"17"` keeps its quotes. Any other
/// type is read from JSON. Types that take text among other things, such as `serde_json::Value`, also get text that is
/// meant as no JSON: that begins with no `{`, `[` or `"`, where neither key nor fingerprint is read from the payload.
/// Broken JSON is a bad record.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the payload of a handler",
    label = "`{Self}` cannot be decoded from a record",
    note = "a payload owns its data (`String`, not `&str`), is `Send`, and implements `serde::Deserialize`: \
            `#[derive(serde::Deserialize)]`",
    note = "the payload is the first argument of a handler, its `Call` the second"
)]
pub trait Payload: Sized + Send + 'static {
    #[doc(hidden)]
    fn decoded(payload: &str, format: Format, sealed: Internal) -> Result<Self, Rejection>;
}

/// For every lifetime of the record's text: the payload outlives it, so it owns its data. Where a payload borrows, the compiler
/// quotes the trait's name, and no note of ours: so the name is the remedy.
pub trait PayloadOwnsItsDataUseString<'de>: Deserialize<'de> {}

impl<'de, T: Deserialize<'de>> PayloadOwnsItsDataUseString<'de> for T {}

#[diagnostic::do_not_recommend]
impl<T> Payload for T
where
    T: for<'de> PayloadOwnsItsDataUseString<'de> + Send + 'static,
{
    fn decoded(payload: &str, format: Format, _: Internal) -> Result<T, Rejection> {
        decode(payload, format)
    }
}

/// An async function of a [`Payload`] and a [`Call`]: `async fn(T, Call) -> Result<_, E>`, or a closure that holds what the
/// handler needs.
///
/// ```
/// # use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation, source::Sqs};
/// # #[derive(Clone)]
/// # struct Client;
/// # impl Client { async fn put(&self, _: &Order) -> Result<(), std::io::Error> { Ok(()) } }
/// #[derive(serde::Deserialize)]
/// struct Order { id: String }
///
/// async fn place_order(client: &Client, order: Order, call: Call) -> Result<(), Failure> {
///     Ok(client.put(&order).await?)
/// }
///
/// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
/// # let (idempotency, client) = (Idempotency::new(MemoryStore::new()), Client);
/// let place = Operation::new("place-order").key("id");
/// let handler = async move |order, call| place_order(&client, order, call).await;
/// let function = idempotency.on(Sqs::new(), &place, handler)?;
/// # Ok(())
/// # }
/// ```
///
/// A closure is cloned for each record, with all that it holds; clients of the AWS SDK are cheap to clone, and a value that is
/// not `Clone` belongs into an `Arc`. Changes to its own
/// variables are lost with the clone: keep a counter in an `Arc<Mutex<_>>`.
///
/// Any standard error type can be returned; a [`Failure`] can also be permanent. The caller of a [direct
/// invocation](crate::source::Invoke) gets the function's result. Other sources do not read it, and it is discarded, with
/// a warning at the start, unless [`keep_result`] keeps it in the store.
///
/// The future has to be `Send`: an `Rc`, or the guard of a `Mutex`, that is held across an `.await` is refused. The trait is
/// sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot handle records",
    label = "not a handler",
    note = "a handler is `async fn(T, Call) -> Result<_, E>`, given without calling it, or `async move |order, call| \
            place(&client, order, call).await`",
    note = "a function that returns one returns `impl Handler<T, Result<_, E>>`; one in a `Box` is put into an `Arc`, and \
            called in a closure"
)]
pub trait Handler<T, R>: HandlerFunction<T, R> + Clone + Send + Sync + 'static {
    #[doc(hidden)]
    fn call_once(self, payload: T, call: Call, sealed: Internal) -> BoxFuture<'static, R>;
}

/// A function that is cloned for each call, with what it holds.
// A bound of its own, before `Handler`: the compiler then says this, in place of one error for each missing trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be called for each record",
    label = "not a function, or it holds a value that is not `Clone`, `Send` and `Sync`",
    note = "a function is given without calling it: `place`, not `place(..)`",
    note = "it is cloned for each record with what it holds: put a client that is not `Clone` into an `Arc`; write `Arc` in \
            place of `Rc`, `Mutex` in place of `RefCell`"
)]
pub trait ClonedForEachCall {}

#[diagnostic::do_not_recommend]
impl<F: Clone + Send + Sync + 'static> ClonedForEachCall for F {}

// These bounds are not a part of the trait below, because the compiler then names the value of a future that is not `Send`,
// and of a closure that is not `Clone`.
impl<F, T, R> Handler<T, R> for F
where
    F: HandlerFunction<T, R, Running: Send + 'static> + Clone + Send + Sync + 'static,
{
    fn call_once(self, payload: T, call: Call, sealed: Internal) -> BoxFuture<'static, R> {
        Box::pin(self.begin(payload, call, sealed))
    }
}

/// A function of a payload and a call. It is called by value, and may give away what it holds.
// `AsyncFnOnce` is the bound from which closures infer their arguments; the future of `FnOnce` has a name on stable Rust.
pub trait HandlerFunction<T, R>: AsyncFnOnce(T, Call) -> R {
    #[doc(hidden)]
    type Running: Future<Output = R>;

    #[doc(hidden)]
    fn begin(self, payload: T, call: Call, sealed: Internal) -> Self::Running;
}

#[diagnostic::do_not_recommend]
impl<F, T, R, Fut> HandlerFunction<T, R> for F
where
    F: AsyncFnOnce(T, Call) -> R + FnOnce(T, Call) -> Fut,
    Fut: Future<Output = R>,
{
    type Running = Fut;

    fn begin(self, payload: T, call: Call, _: Internal) -> Fut {
        self(payload, call)
    }
}

/// An async function of one argument, such as a [sink](crate::source#records-that-will-never-be-processed): `async fn(A) -> R`,
/// or a closure that holds what it needs, and is cloned for each call, as a [`Handler`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be called with a `{A}`",
    label = "not an async function of a `{A}`",
    note = "write an `async fn` with this argument, given without calling it, or a closure that holds what it needs: \
            `async move |record| to_review(&client, record).await`"
)]
pub trait Callback<A, R>: CallbackFunction<A, R> + Clone + Send + Sync + 'static {
    #[doc(hidden)]
    fn call_with(self, argument: A, sealed: Internal) -> BoxFuture<'static, R>;
}

// As of `Handler`.
impl<F, A, R> Callback<A, R> for F
where
    F: CallbackFunction<A, R, Running: Send + 'static> + Clone + Send + Sync + 'static,
{
    fn call_with(self, argument: A, sealed: Internal) -> BoxFuture<'static, R> {
        Box::pin(self.begin(argument, sealed))
    }
}

/// A function of one argument. As a [`HandlerFunction`], it is called by value.
pub trait CallbackFunction<A, R>: AsyncFnOnce(A) -> R {
    #[doc(hidden)]
    type Running: Future<Output = R>;

    #[doc(hidden)]
    fn begin(self, argument: A, sealed: Internal) -> Self::Running;
}

#[diagnostic::do_not_recommend]
impl<F, A, R, Fut> CallbackFunction<A, R> for F
where
    F: AsyncFnOnce(A) -> R + FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
{
    type Running = Fut;

    fn begin(self, argument: A, _: Internal) -> Fut {
        self(argument)
    }
}

/// Begins a call of a clone of the function.
pub(crate) fn handle_with_clone<T, R, F>(function: &F, payload: T, call: Call) -> F::Running
where
    F: HandlerFunction<T, R> + Clone,
{
    function.clone().begin(payload, call, Internal)
}

/// Calls a clone of the function.
pub(crate) fn call_clone<A, R>(
    function: &impl Callback<A, R>,
    argument: A,
) -> BoxFuture<'static, R> {
    function.clone().call_with(argument, Internal)
}

/// The result of a handler: a `Result` whose value can be serialized, and whose error converts to a [`Failure`]. It is a
/// sealed trait so that the compiler can explain what is expected where a handler returns another type.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "this returns `{Self}`",
    note = "a handler returns `Result<R, E>`, where `E` is `lambda_idempotency::Failure`, a type that implements \
            `std::error::Error + Send + Sync`, a boxed one of these, or a `String`; another type is converted: \
            `impl From<MyError> for Failure`",
    note = "`R` is `()`, or a type that implements `serde::Serialize`, because a caller may get it, and a store may keep it",
    note = "a future is awaited in the handler: `async move |order, call| place(&client, order, call).await`"
)]
pub trait HandlerResult: 'static {
    #[doc(hidden)]
    type Value: Serialize + 'static;

    /// Whether it is kept for every source.
    #[doc(hidden)]
    const IS_KEPT: bool;

    #[doc(hidden)]
    fn into_result(self, sealed: Internal) -> Result<Self::Value, Failure>;
}

// Without this the compiler would list each missing conversion instead of the note above.
#[diagnostic::do_not_recommend]
impl<R: Serialize + 'static, E: Into<Failure> + 'static> HandlerResult for Result<R, E> {
    type Value = R;

    const IS_KEPT: bool = false;

    fn into_result(self, _: Internal) -> Result<R, Failure> {
        self.map_err(Into::into)
    }
}

/// The result of a handler of [`keep_result`].
#[derive(Debug)]
pub struct KeptResult<R>(R);

#[diagnostic::do_not_recommend]
impl<R: HandlerResult> HandlerResult for KeptResult<R> {
    type Value = R::Value;

    const IS_KEPT: bool = true;

    fn into_result(self, sealed: Internal) -> Result<R::Value, Failure> {
        self.0.into_result(sealed)
    }
}

/// The result of a function of [`Idempotency::run`](crate::Idempotency::run), if it is `Ok`: a type that implements
/// `serde::Serialize` and `serde::de::DeserializeOwned`, because the store keeps it for later calls.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of `run`",
    label = "`{Self}` cannot be kept for later calls",
    note = "the store keeps it as JSON: `#[derive(serde::Serialize, serde::Deserialize)]`; it owns its data, and is `Send`"
)]
pub trait CallResult: Serialize + DeserializeOwned + Send {}

#[diagnostic::do_not_recommend]
impl<R: Serialize + DeserializeOwned + Send> CallResult for R {}

/// Keeps what `handler` returns, as JSON in the completion of its key, for the operation's
/// retention.
///
/// Observers see it in each [`Outcome`](crate::Outcome::result), also for duplicates, and
/// [`Idempotency::kept_result`](crate::Idempotency::kept_result) reads it later, by the key of a
/// payload. It needs no additional requests: a batch is still claimed together and completed
/// together. The result takes space in the store; on DynamoDB its completion and the claim of each
/// duplicate cost a write unit for each further KiB. A result that is too large for the store (400
/// KB in DynamoDB) or cannot be serialized is left out: the work counts as done, and the log
/// contains a warning ([`ResultKept`](crate::observe::ResultKept)).
///
/// ```
/// use lambda_idempotency::{
///     Call, Failure, Idempotency, MemoryStore, Operation, handler::keep_result, source::Sqs, testing,
/// };
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
/// let function = idempotency.on(Sqs::new(), &operation, keep_result(place))?;
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
pub fn keep_result<T, R, H>(handler: H) -> impl Handler<T, KeptResult<R>>
where
    T: Payload,
    R: HandlerResult + Send,
    H: ClonedForEachCall + Handler<T, R>,
{
    move |payload, call| {
        let running = handler.clone().call_once(payload, call, Internal);
        async move { KeptResult(running.await) }
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
    /// A call for this payload. Its result is kept if `keeps` says so, or the handler.
    fn job<'j>(
        self: Arc<Self>,
        payload: &str,
        format: Format,
        keeps: bool,
    ) -> Result<Job<'j>, Rejection>;

    /// Whether its result is `()`.
    fn returns_nothing(&self) -> bool;

    /// Whether it returns a result that it does not keep.
    fn drops_result(&self) -> bool;
}

pub(crate) struct Typed<H, T, R> {
    handler: H,
    types: PhantomData<fn(T) -> R>,
}

impl<H, T, R> Typed<H, T, R> {
    pub(crate) fn new(handler: H) -> Self {
        Self { handler, types: PhantomData }
    }
}

impl<H, T, R> ErasedHandler for Typed<H, T, R>
where
    H: Handler<T, R>,
    T: Payload,
    R: HandlerResult,
{
    fn job<'j>(
        self: Arc<Self>,
        payload: &str,
        format: Format,
        keeps: bool,
    ) -> Result<Job<'j>, Rejection> {
        let payload = T::decoded(payload, format, Internal)?;
        let keeps = R::IS_KEPT || keeps && !self.returns_nothing();
        Ok(Box::new(move |call| {
            let running = self.handler.clone().call_once(payload, call, Internal);
            Box::pin(async move {
                let value = running.await.into_result(Internal)?;
                Ok(if keeps { serialized(&value) } else { Returned::Nothing })
            })
        }))
    }

    fn returns_nothing(&self) -> bool {
        TypeId::of::<R::Value>() == TypeId::of::<()>()
    }

    fn drops_result(&self) -> bool {
        !R::IS_KEPT && !self.returns_nothing()
    }
}

/// Carries what a function returned past the engine, which gets its JSON alone, to the caller of this attempt.
pub(crate) struct Bypass<T>(Arc<Mutex<Option<T>>>);

impl<T> Bypass<T> {
    pub(crate) fn put(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// The value, if the function was called and ended.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Default for Bypass<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Bypass<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The result of work that is done, as JSON text, if there is one.
pub(crate) enum ResultFrom {
    /// The handler returned it in this call.
    Now(Option<Json>),
    /// It was kept.
    Earlier(Option<Json>),
}

/// The result for the caller of this outcome, or why there is none.
pub(crate) fn result_of(outcome: Option<Outcome>) -> Result<ResultFrom, RunError> {
    Err(match outcome {
        Some(
            Outcome::Executed { result, .. }
            | Outcome::Unprotected { result, .. }
            | Outcome::CompletionLost { result, .. },
        ) => return Ok(ResultFrom::Now(result)),
        Some(
            Outcome::Replayed { result, .. }
            | Outcome::Superseded { result, .. }
            | Outcome::Coalesced { result, .. },
        ) => return Ok(ResultFrom::Earlier(result)),
        Some(Outcome::Failed { failure, .. }) => RunError::Failed(failure),
        Some(Outcome::PermanentlyFailed { error_type, .. }) => {
            RunError::PermanentlyFailed { error_type }
        }
        Some(Outcome::Busy { until }) => RunError::Busy { until },
        Some(Outcome::Mismatch) => RunError::Mismatch,
        Some(Outcome::Foreign(foreign)) => RunError::Foreign(foreign),
        Some(Outcome::Rejected(rejected)) => RunError::Rejected(rejected.into()),
        Some(Outcome::Unavailable(error) | Outcome::Uncommitted { error }) => {
            RunError::Store(error)
        }
        Some(Outcome::Unsent { error, .. }) => RunError::Unsent(error),
        Some(Outcome::Fenced) => RunError::Fenced,
        Some(Outcome::TimedOut { .. } | Outcome::Returned(_)) | None => RunError::OutOfTime,
        Some(_) => RunError::ResultLost(ResultLost::Unknown),
    })
}

/// Decodes a result that an earlier call kept.
pub(crate) fn decoded<R: DeserializeOwned>(result: Option<Json>) -> Result<R, RunError> {
    let json = result.ok_or(RunError::ResultLost(ResultLost::NotKept))?;
    decode(&json, Format::Json).map_err(|_| RunError::ResultLost(ResultLost::OtherType))
}
