//! What all envelopes have in common: the account, the region, and payloads that are JSON.

use serde_json::Value;

pub(super) const ACCOUNT: &str = "111122223333";
pub(super) const REGION: &str = "eu-west-1";

pub(super) fn arn(service: &str, rest: &str) -> String {
    format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}")
}

pub(super) fn json_of(payload: &str) -> Result<Value, String> {
    serde_json::from_str(payload).map_err(|error| {
        format!("this source sends JSON, and the payload is not valid JSON: {error}")
    })
}
