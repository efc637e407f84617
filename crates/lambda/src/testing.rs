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

use std::io::Write as _;

use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json, value::to_raw_value};
use tower_service::Service as _;

use crate::{
    Call,
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

/// Without it, [`effect`] does nothing.
const REPORTED: &str = "IDEMPOTENCY_REPORT_EFFECTS";

/// Reports that an effect happened, for a test that counts effects. Call it right after the effect; give each effect
/// of a handler a `name` of its own.
///
/// `lambda-idempotency chaos` and `invoke --report` set the variable `IDEMPOTENCY_REPORT_EFFECTS=1` for the function.
/// Then this writes one line to standard error: the name, the record's id, the hash of its key and the fence. Without
/// the variable it does nothing, so it may stay in the code that is deployed. It never fails.
///
/// ```
/// use lambda_idempotency::{Call, Failure, testing};
///
/// async fn charge(payment: serde_json::Value, call: Call) -> Result<(), Failure> {
///     // .. call the payment service ..
///     testing::effect(&call, "charge");
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() { charge(serde_json::json!({}), Call::test("p-1")).await.unwrap() }
/// ```
pub fn effect(call: &Call, name: &str) {
    if std::env::var(REPORTED).is_ok_and(|value| value == "1") {
        // The program that tests the function reads this line, and nobody else, so a failure to write it has no consequence. One
        // write for the line: a process that is killed has written all of it or nothing.
        let _ = std::io::stderr().write_all(line(call, name).as_bytes());
    }
}

fn line(call: &Call, name: &str) -> String {
    let line = json!({
        "lambda_idempotency_effect": name,
        "record": call.record().label(),
        "key_hash": call.key_hash(),
        "fence": call.fence(),
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_effect_and_its_attempt() {
        let call = Call::test("o-1").with_fence(7);
        let line: serde_json::Value = serde_json::from_str(&line(&call, "a \"name\"")).unwrap();
        assert_eq!(line["lambda_idempotency_effect"], "a \"name\"");
        assert_eq!((&line["fence"], &line["record"]), (&json!(7), &json!(call.record().label())));
        assert_eq!(line["key_hash"].as_str(), call.key_hash());
    }
}
