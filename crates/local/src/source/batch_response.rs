//! How the SQS poller reads a function's answer.
//!
//! With `ReportBatchItemFailures` the poller is strict: an answer that it does not understand fails the whole batch.
//! Without it, the poller ignores the answer.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::InvocationResult;

/// Which messages of a batch are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchResponse {
    /// All of them: they are deleted.
    Done,
    /// All but those with these ids.
    Failed(BTreeSet<String>),
    /// None of them, for this reason.
    AllFailed(String),
}

impl BatchResponse {
    /// Reads the result of an invocation with messages of these ids.
    pub fn of(
        result: &InvocationResult,
        ids: &BTreeSet<String>,
        report_batch_item_failures: bool,
    ) -> Self {
        let InvocationResult::Response(response) = result else {
            return Self::AllFailed(result.to_string());
        };
        if !report_batch_item_failures || response.is_null() {
            return Self::Done;
        }
        let Value::Object(response) = response else {
            return Self::all("the response is not an object");
        };
        let failures = match response.get("batchItemFailures") {
            None | Some(Value::Null) => return Self::Done,
            Some(Value::Array(failures)) => failures,
            Some(_) => return Self::all("batchItemFailures is not a list"),
        };
        let mut failed = BTreeSet::new();
        for failure in failures {
            match failure.get("itemIdentifier") {
                None => return Self::all("a failure has no itemIdentifier"),
                Some(Value::String(id)) if ids.contains(id) => failed.insert(id.clone()),
                Some(Value::String(id)) if id.is_empty() => {
                    return Self::all("an itemIdentifier is empty");
                }
                Some(Value::String(_)) => {
                    return Self::all("an itemIdentifier is not of this batch");
                }
                Some(_) => return Self::all("an itemIdentifier is not a string"),
            };
        }
        if failed.is_empty() { Self::Done } else { Self::Failed(failed) }
    }

    fn all(reason: &str) -> Self {
        Self::AllFailed(reason.to_owned())
    }

    /// Whether the message with this id is done.
    pub fn is_done(&self, id: Option<&str>) -> bool {
        match self {
            Self::Done => true,
            Self::Failed(failed) => id.is_none_or(|id| !failed.contains(id)),
            Self::AllFailed(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judge(response: Value) -> BatchResponse {
        let ids = ["a", "b"].map(str::to_owned).into();
        BatchResponse::of(&InvocationResult::Response(response), &ids, true)
    }

    #[test]
    fn a_response_without_failures_is_success() {
        for response in [
            json!(null),
            json!({}),
            json!({"batchItemFailures": null}),
            json!({"batchItemFailures": []}),
        ] {
            assert_eq!(judge(response.clone()), BatchResponse::Done, "{response}");
        }
    }

    #[test]
    fn an_invalid_response_fails_the_whole_batch() {
        let one =
            |failure: Value| json!({ "batchItemFailures": [{ "itemIdentifier": "a" }, failure] });
        let strange = [
            one(json!({ "itemIdentifier": "" })),
            one(json!({ "itemIdentifier": null })),
            one(json!({ "itemIdentifier": "unknown" })),
            one(json!({ "messageId": "b" })),
            one(json!("b")),
            json!({ "batchItemFailures": "a" }),
            json!("ok"),
        ];
        for response in strange {
            assert!(matches!(judge(response.clone()), BatchResponse::AllFailed(_)), "{response}");
        }
        let ids = ["a".to_owned()].into();
        for result in [InvocationResult::TimedOut, InvocationResult::NotJson("{".to_owned())] {
            assert!(
                matches!(BatchResponse::of(&result, &ids, true), BatchResponse::AllFailed(_)),
                "{result}"
            );
        }
    }

    #[test]
    fn only_named_records_fail() {
        let batch_response = judge(json!({ "batchItemFailures": [{ "itemIdentifier": "b" }] }));
        assert!(batch_response.is_done(Some("a")));
        assert!(!batch_response.is_done(Some("b")));
    }

    #[test]
    fn without_the_setting_a_batch_response_is_not_read() {
        let response =
            InvocationResult::Response(json!({ "batchItemFailures": [{ "itemIdentifier": "a" }] }));
        assert_eq!(
            BatchResponse::of(&response, &["a".to_owned()].into(), false),
            BatchResponse::Done
        );
    }
}
