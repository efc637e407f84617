//! What the caller of a direct invocation gets.

use std::borrow::Cow;

use lambda_idempotency_core::outcome::{Outcome, ResultKept};
use serde_json::value::{RawValue, to_raw_value};

use super::Route;
use crate::{
    error::{ResultLost, RunError},
    result::{ResultFrom, result_of},
    source::Event,
};

impl Route {
    /// The answer to an event with this outcome: the handler's result, now or earlier, or why there is none.
    pub(crate) fn answer(
        &self,
        event: &Event<'_>,
        outcome: Option<Outcome>,
    ) -> Result<Box<RawValue>, RunError> {
        let result = self.result(outcome)?;
        let Some(answer) = &self.settings.answer else { return Ok(result) };
        let answer = answer.make(&result, event.raw).map_err(RunError::ResultLost)?;
        to_raw_value(&answer).map_err(|_| RunError::ResultLost(ResultLost::Unserializable))
    }

    fn result(&self, outcome: Option<Outcome>) -> Result<Box<RawValue>, RunError> {
        // A handler that ran in this call and returned a value has a result here, unless it cannot be JSON.
        let lost = match &outcome {
            Some(
                Outcome::Executed { kept: ResultKept::Unserializable, .. }
                | Outcome::Unprotected { .. }
                | Outcome::CompletionLost { .. },
            ) => ResultLost::Unserializable,
            _ => ResultLost::NotKept,
        };
        let answered = match &outcome {
            Some(Outcome::Failed { failure, permanent: false, .. }) => failure.answer().cloned(),
            _ => None,
        };
        let result = match answered {
            Some(answer) => Some(answer),
            None => match result_of(outcome)? {
                ResultFrom::Now(result) | ResultFrom::Earlier(result) => result,
            },
        };
        let json = match &result {
            Some(json) => Cow::Borrowed(&**json),
            None if self.handler.returns_nothing() => Cow::Borrowed("null"),
            None => return Err(RunError::ResultLost(lost)),
        };
        // What the store has may be of another library, and need not be JSON.
        RawValue::from_string(json.into_owned())
            .map_err(|_| RunError::ResultLost(ResultLost::OtherType))
    }
}
