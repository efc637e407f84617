//! Handlers: async functions of a decoded payload.

use std::{
    any::type_name,
    future::Future,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use lambda_idempotency_core::{
    batch::{Job, Returned},
    call::Call,
    failure::Failure,
    outcome::Rejection,
};
use serde::de::{DeserializeOwned, IntoDeserializer as _};

/// An async function of a payload and a [`Call`]: `async fn(T, Call) -> Result<_, E>`.
///
/// `T` is decoded from the record's payload (SQS body, SNS message, Kinesis data, ...). Where that
/// is not JSON, `T` is given the text, so that `String` works. Any error type that is a standard
/// error will do, and [`Failure`] says more. What the function returns besides is not kept: nobody
/// reads the answer to a queue record.
pub trait Handler<T>: Send + Sync + 'static {
    #[doc(hidden)]
    fn call(&self, payload: T, call: Call) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl<F, T, Fut, R, E> Handler<T> for F
where
    F: Fn(T, Call) -> Fut + Send + Sync + 'static,
    T: Send,
    Fut: Future<Output = Result<R, E>> + Send,
    E: Into<Failure>,
{
    fn call(&self, payload: T, call: Call) -> impl Future<Output = Result<(), Failure>> + Send {
        let running = self(payload, call);
        async move { running.await.map(drop).map_err(Into::into) }
    }
}

/// A handler whose payload type is hidden: decodes first, so that a record which cannot be decoded
/// never claims its key.
pub(crate) trait ErasedHandler: Send + Sync {
    fn job<'j>(self: Arc<Self>, payload: &str) -> Result<Job<'j>, Rejection>;
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
    fn job<'j>(self: Arc<Self>, payload: &str) -> Result<Job<'j>, Rejection> {
        // The user's `Deserialize` may panic; the other records of the batch have no part in that.
        let payload: T = catch_unwind(AssertUnwindSafe(|| decode(payload)))
            .unwrap_or(Err(Rejection::DecodePanicked { expected: type_name::<T>() }))?;
        Ok(Box::new(move |call| {
            Box::pin(
                async move { self.handler.call(payload, call).await.map(|()| Returned::Nothing) },
            )
        }))
    }
}

/// Decodes a payload; the error says where it went wrong, and not what stands there.
pub(crate) fn decode<T: DeserializeOwned>(payload: &str) -> Result<T, Rejection> {
    serde_json::from_str(payload).or_else(|error| {
        let text: Result<T, serde::de::value::Error> = if error.is_syntax() || error.is_eof() {
            T::deserialize(payload.into_deserializer())
        } else {
            Err(serde::de::Error::custom("not text"))
        };
        text.map_err(|_| Rejection::Decode {
            expected: type_name::<T>(),
            line: error.line(),
            column: error.column(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, PartialEq)]
    struct Order {
        id: u32,
    }

    #[test]
    fn json_and_plain_text_are_decoded() {
        assert_eq!(decode::<Order>(r#"{"id":1}"#).unwrap(), Order { id: 1 });
        assert_eq!(decode::<String>("Test message.").unwrap(), "Test message.");
        assert_eq!(decode::<String>(r#""quoted""#).unwrap(), "quoted");
    }

    #[test]
    fn a_refusal_says_where_and_never_what() {
        let message = decode::<Order>(r#"{"id":"s3cr3t"}"#).unwrap_err().to_string();
        assert!(message.contains("Order") && message.contains("column 14"), "{message}");
        assert!(!message.contains("s3cr3t"), "{message}");
        assert!(decode::<Order>("s3cr3t").is_err());
    }
}
