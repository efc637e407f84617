//! Calls a function in a test, as Lambda does.
//!
//! To test a handler alone, call it as a plain async function with a
//! [`Call::test`](crate::Call::test).
//!
//! ```
//! use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation, source::Sqs, testing};
//! use serde_json::json;
//!
//! async fn place(order: serde_json::Value, call: Call) -> Result<(), std::io::Error> { Ok(()) }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let idempotency = Idempotency::new(MemoryStore::new());
//! let operation = Operation::new("place-order").key("orderId");
//! let function = idempotency.on(Sqs::new(), &operation, place)?;
//!
//! let message = json!({
//!     "messageId": "m-1", "eventSource": "aws:sqs",
//!     "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
//!     "body": r#"{"orderId":"o-1"}"#,
//! });
//! let answer = testing::invoke(&function, &json!({ "Records": [message] })).await?;
//! assert_eq!(answer, json!({ "batchItemFailures": [] }));
//! # Ok(())
//! # }
//! ```

mod effect;

pub use effect::effect;

use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, value::to_raw_value};
use tower_service::Service as _;

use crate::{
    error::{InvocationError, NotJson},
    function::Function,
};

/// Calls `function` with an event and a context without a deadline, and returns the response that
/// Lambda would get.
///
/// # Errors
/// The error that Lambda would get.
pub async fn invoke(function: &Function, event: &Value) -> Result<Value, InvocationError> {
    invoke_with(function, event, Context::default()).await
}

/// Like [`invoke`], with your own context. Its `deadline` (in milliseconds since the epoch; 0 is
/// unknown, as is one that is past or more than 15 minutes ahead) and its `tenant_id` have an effect.
///
/// # Errors
/// The error that Lambda would get.
pub async fn invoke_with(
    function: &Function,
    event: &Value,
    context: Context,
) -> Result<Value, InvocationError> {
    let event = to_raw_value(event).map_err(|_| InvocationError::Json(NotJson::Event))?;
    let answer = function.clone().call(LambdaEvent::new(event, context)).await?;
    serde_json::from_str(answer.get()).map_err(|_| InvocationError::Json(NotJson::Answer))
}
