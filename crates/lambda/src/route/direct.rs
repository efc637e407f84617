//! Direct invocations: their key, and what their caller gets.

use std::borrow::Cow;

use lambda_idempotency_core::outcome::{Outcome, ResultKept};
use serde_json::value::{RawValue, to_raw_value};

use super::Route;
use crate::{
    error::{ConfigError, ResultLost, RunError},
    idempotency::run::{ResultFrom, result_of},
    source::Event,
};

impl Route {
    /// Refuses direct invocations without a key that their user chose.
    pub(super) fn chooses_key(&self) -> Result<(), ConfigError> {
        if !self.source.answers_its_caller() {
            return Ok(());
        }
        let name = &self.prepared.name;
        match (self.settings.by_request_id, self.prepared.names_key()) {
            (false, true) | (true, false) => Ok(()),
            (false, false) => Err(ConfigError::key(format!(
                "operation `{name}` takes direct invocations, which have no default key; choose one with `.key(\"...\")` \
                 (`\"@\"` is the whole event), or, if Lambda alone repeats them, because they are asynchronous, take them \
                 with `Invoke::by_request_id()`"
            ))),
            (true, true) => Err(ConfigError::key(format!(
                "operation `{name}` has a key, and its source is `Invoke::by_request_id()`, which has no effect beside it; \
                 write `Invoke::new()`, or leave the key out"
            ))),
        }
    }

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
