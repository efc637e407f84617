//! What a source changes in a record when it delivers it again.

use serde_json::Value;

/// The event, and the event as SQS delivers it again: with another receipt handle and a higher receive count.
/// `None` if the event has no messages of SQS.
///
/// A key must not depend on what changes. Both texts are written again, so that nothing else differs.
pub(crate) fn of_messages(event: &str) -> Option<(String, String)> {
    let before: Value = serde_json::from_str(event).ok()?;
    let mut after = before.clone();
    let records = match &mut after {
        // A pipe delivers a bare list.
        Value::Array(records) => records,
        other => other.get_mut("Records")?.as_array_mut()?,
    };
    for record in records {
        if let Some(handle) = record.get_mut("receiptHandle") {
            *handle = Value::from("another receipt handle");
        }
        let count = record.get_mut("attributes");
        if let Some(count) = count.and_then(|a| a.get_mut("ApproximateReceiveCount")) {
            *count = Value::from("1000");
        }
    }
    (before != after).then(|| (before.to_string(), after.to_string()))
}
