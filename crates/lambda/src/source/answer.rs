//! The function that makes the answers to direct invocations.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::contained::caught;
use serde_json::{Value, value::RawValue};

use crate::error::ResultLost;

/// Makes an answer from a result and an event.
#[derive(Clone)]
pub(crate) struct Answer(Arc<Make>);

/// From the handler's result and the event to the answer.
type Make = dyn Fn(Value, &Value) -> Value + Send + Sync;

impl Answer {
    pub(super) fn new(make: impl Fn(Value, &Value) -> Value + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// The answer to this event.
    pub(crate) fn make(&self, result: &RawValue, event: &RawValue) -> Result<Value, ResultLost> {
        let read = |json: &RawValue| serde_json::from_str(json.get());
        let (Ok(result), Ok(event)) = (read(result), read(event)) else {
            return Err(ResultLost::NoAnswer);
        };
        caught(|| (self.0)(result, &event)).ok_or(ResultLost::NoAnswer)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}
