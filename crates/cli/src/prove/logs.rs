//! What Lambda and the function logged: each invocation, how it ended, and what became of its records.

use std::collections::BTreeMap;

use lambda_idempotency_chaos::Ended;
use lambda_idempotency_local::RecordLine;
use serde_json::Value;

/// A line of a log group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogLine {
    /// The stream, of which each sandbox has one.
    pub(crate) stream: String,
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) text: String,
}

/// An invocation that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Invocation {
    pub(crate) stream: String,
    pub(crate) request_id: String,
    /// When Lambda reported its end.
    pub(crate) at: i64,
    pub(crate) ended: Ended,
    pub(crate) records: Vec<RecordLine>,
}

/// The invocations in these lines, which are in the order of time. Lines of records belong to the report that follows
/// them in their stream.
pub(crate) fn invocations<'l>(lines: impl Iterator<Item = &'l LogLine>) -> Vec<Invocation> {
    let mut open: BTreeMap<&str, Vec<RecordLine>> = BTreeMap::new();
    let mut ended: Vec<Invocation> = Vec::new();
    for line in lines {
        let records = open.entry(&line.stream).or_default();
        if let Some(record) = RecordLine::parse(&line.text) {
            records.push(record);
        } else if let Some(mut invocation) = report(line) {
            // A retry has the request id of its first attempt, and comes after that has ended.
            let is_own = |record: &RecordLine| {
                record.request_id.as_ref().is_none_or(|id| *id == invocation.request_id)
            };
            let (own, others) = records.drain(..).partition(is_own);
            *records = others;
            invocation.records = own;
            ended.push(invocation);
        }
    }
    // Lines that were stored after their report.
    for (stream, records) in open {
        for record in records {
            let own = ended.iter_mut().rev().find(|invocation| {
                invocation.stream == stream
                    && record.request_id.as_ref() == Some(&invocation.request_id)
            });
            if let Some(invocation) = own {
                invocation.records.push(record);
            }
        }
    }
    ended
}

/// Reads `platform.report`, with which Lambda ends each invocation in the log format JSON.
fn report(line: &LogLine) -> Option<Invocation> {
    let value: Value = serde_json::from_str(&line.text).ok()?;
    if value.get("type")? != "platform.report" {
        return None;
    }
    let record = value.get("record")?;
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let ended = match text("status") {
        "timeout" => Ended::TimedOut,
        // The runtime has ended: `failure`, and in some versions an error of that type.
        "failure" => Ended::Died,
        "error" if text("errorType").starts_with("Runtime.Exit") => Ended::Died,
        _ => Ended::Answered,
    };
    Some(Invocation {
        stream: line.stream.clone(),
        request_id: text("requestId").to_owned(),
        at: line.at,
        ended,
        records: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(stream: &str, at: i64, text: &Value) -> LogLine {
        LogLine { stream: stream.to_owned(), at, text: text.to_string() }
    }

    fn record(message: &str, request: &str) -> Value {
        json!({
            "level": "INFO",
            "fields": { "message": "record done", "record": message, "outcome": "executed" },
            "span": { "requestId": request },
        })
    }

    fn ending(request: &str, status: &str, error: Option<&str>) -> Value {
        json!({
            "time": "2026-01-01T00:00:00.000Z",
            "type": "platform.report",
            "record": {
                "requestId": request,
                "status": status,
                "errorType": error,
                "metrics": { "durationMs": 12.5, "billedDurationMs": 13, "memorySizeMB": 256, "maxMemoryUsedMB": 40 },
            },
        })
    }

    #[test]
    fn lines_belong_to_the_next_report_of_their_stream_and_request() {
        let lines = [
            line("a", 1, &record("m1", "r1")),
            line("b", 1, &record("m2", "r2")),
            line("a", 2, &ending("r1", "success", None)),
            line("a", 3, &record("m3", "r3")),
            line("b", 3, &ending("r2", "success", None)),
            line("a", 4, &ending("r3", "success", None)),
            line("b", 5, &record("m4", "r2")), // late
            LogLine { stream: "b".to_owned(), at: 6, text: "not JSON".to_owned() },
        ];
        let found = invocations(lines.iter());
        let named: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|one| (&*one.request_id, one.records.iter().map(|line| &*line.record).collect()))
            .collect();
        assert_eq!(named, [("r1", vec!["m1"]), ("r2", vec!["m2", "m4"]), ("r3", vec!["m3"])]);
    }

    #[test]
    fn ends_are_told_apart() {
        for (status, error, expected) in [
            ("success", None, Ended::Answered),
            ("error", Some("Idempotency.RecordsReturned"), Ended::Answered),
            ("error", Some("Runtime.ExitError"), Ended::Died),
            ("failure", None, Ended::Died),
            ("timeout", None, Ended::TimedOut),
        ] {
            let lines = [line("a", 1, &ending("r", status, error))];
            assert_eq!(invocations(lines.iter())[0].ended, expected, "{status} {error:?}");
        }
    }
}
