//! The findings in the account: the log with each invocation, how it ended and what became of its records; dead letters,
//! queues, the ledger and the table.

use std::collections::{BTreeMap, HashMap, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use lambda_idempotency_chaos::Ended;
use lambda_idempotency_local::RecordLine;
use serde_json::Value;

use super::stack::{Clients, Stack, failed};
use crate::failure::Failure;

/// How far back a look at the log goes beyond its latest line: lines may be stored late.
const OVERLAP_MS: i64 = 120_000;

/// The item with which the function uses up the table's capacity (`docs/prove/src/burst.rs`).
const BURST: &str = "prove-burst";

/// The findings about a run so far.
#[derive(Debug)]
pub(crate) struct Collected {
    run: String,
    since: i64,
    /// By their time and their id.
    lines: BTreeMap<(i64, usize), LogLine>,
    known: HashSet<String>,
    /// The ids of messages that are in a dead-letter queue.
    pub(crate) dead: HashSet<String>,
}

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) run: String,
    pub(crate) stream: String,
    pub(crate) at: i64,
    pub(crate) number: u64,
    pub(crate) is_effect: bool,
    pub(crate) order: usize,
    pub(crate) message: String,
    /// The invocation.
    pub(crate) request: String,
    pub(crate) fence: u64,
}

impl Collected {
    pub(crate) fn new(run: String, since: i64) -> Self {
        let (lines, known, dead) = (BTreeMap::new(), HashSet::new(), HashSet::new());
        Self { run, since, lines, known, dead }
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &LogLine> {
        self.lines.values()
    }

    /// Looks again at the log's end and the dead-letter queues.
    pub(crate) async fn look(&mut self, clients: &Clients, stack: &Stack) -> Result<(), Failure> {
        let latest = self.lines.last_key_value().map_or(self.since, |((at, _), _)| *at);
        self.look_from((latest - OVERLAP_MS).max(self.since), clients, stack).await
    }

    /// Looks at all of the run's log, and at the dead-letter queues.
    pub(crate) async fn look_at_all(
        &mut self,
        clients: &Clients,
        stack: &Stack,
    ) -> Result<(), Failure> {
        self.look_from(self.since, clients, stack).await
    }

    async fn look_from(
        &mut self,
        from: i64,
        clients: &Clients,
        stack: &Stack,
    ) -> Result<(), Failure> {
        let request = clients.logs.filter_log_events().log_group_name(&stack.logs).start_time(from);
        let mut pages = request.into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| failed("FilterLogEvents", error))?;
            for event in page.events.unwrap_or_default() {
                let (Some(id), Some(text)) = (event.event_id, event.message) else { continue };
                if !self.known.insert(id) {
                    continue;
                }
                let stream = event.log_stream_name.unwrap_or_default();
                let at = event.timestamp.unwrap_or_default();
                self.lines.insert((at, self.known.len()), LogLine { stream, at, text });
            }
        }
        for queue in &stack.dead_letters {
            self.dead_letters(clients, queue).await?;
        }
        Ok(())
    }

    /// Takes the dead letters of this run out of their queue.
    async fn dead_letters(&mut self, clients: &Clients, queue: &str) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        loop {
            let request = clients.sqs.receive_message().queue_url(queue).max_number_of_messages(10);
            // Without a wait, SQS asks some of its servers only, and may find nothing where there is something.
            let answer = request.visibility_timeout(30).wait_time_seconds(1).send().await;
            let answer = answer.map_err(|error| failed("ReceiveMessage of dead letters", error))?;
            let messages = answer.messages.unwrap_or_default();
            // Messages that stay come again when they are visible.
            let ids = messages.iter().filter_map(|message| message.message_id.clone());
            if ids.filter(|id| seen.insert(id.clone())).count() == 0 {
                return Ok(());
            }
            for message in messages {
                let body = message.body.unwrap_or_default();
                // Messages of another run stay.
                if !is_of(&body, &self.run) {
                    continue;
                }
                self.dead.extend(message.message_id);
                let Some(handle) = message.receipt_handle else { continue };
                let delete = clients.sqs.delete_message().queue_url(queue).receipt_handle(handle);
                delete.send().await.map_err(|error| failed("DeleteMessage", error))?;
            }
        }
    }
}

/// Whether a message is of this run.
fn is_of(body: &str, run: &str) -> bool {
    let order: Option<Value> = serde_json::from_str(body).ok();
    order.is_some_and(|order| order.get("run").and_then(Value::as_str) == Some(run))
}

/// How many messages the two queues have, visible or not.
pub(crate) async fn queued(clients: &Clients, stack: &Stack) -> Result<u64, Failure> {
    use QueueAttributeName as Name;
    let names = [
        Name::ApproximateNumberOfMessages,
        Name::ApproximateNumberOfMessagesNotVisible,
        Name::ApproximateNumberOfMessagesDelayed,
    ];
    let mut all = 0;
    for queue in [&stack.queue, &stack.fifo] {
        let request = clients.sqs.get_queue_attributes().queue_url(queue);
        let request = request.set_attribute_names(Some(names.to_vec())).send().await;
        let answer = request.map_err(|error| failed("GetQueueAttributes", error))?;
        let counts = answer.attributes.unwrap_or_default();
        all += names.iter().filter_map(|name| counts.get(name)?.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(all)
}

/// The lines of the ledger since then, of all runs.
pub(crate) async fn ledger(
    clients: &Clients,
    stack: &Stack,
    since: i64,
) -> Result<Vec<Entry>, Failure> {
    let request = clients
        .dynamodb
        .scan()
        .table_name(&stack.ledger)
        .consistent_read(true)
        .filter_expression("#at >= :since")
        .expression_attribute_names("#at", "at")
        .expression_attribute_values(":since", AttributeValue::N(since.to_string()));
    let mut pages = request.into_paginator().items().send();
    let mut entries = Vec::new();
    while let Some(item) = pages.next().await {
        let item = item.map_err(|error| failed("Scan of the ledger", error))?;
        let Some(entry) = entry(&item) else {
            return Err(Failure::from(
                "an item of the ledger is not of this version of the function",
            ));
        };
        entries.push(entry);
    }
    Ok(entries)
}

/// The lines of a run in a ledger.
#[derive(Debug, PartialEq)]
pub(crate) enum Lines {
    Own(Vec<Entry>),
    None,
    /// The function was at work for this other run, too, since the run has begun.
    Mixed(String),
}

/// Finds the lines of a run. Processes that ended for another run at the same time would look like faults of this one.
pub(crate) fn lines_of(run: &str, ledger: Vec<Entry>) -> Lines {
    let (own, others): (Vec<_>, Vec<_>) = ledger.into_iter().partition(|entry| entry.run == run);
    let Some(first) = own.iter().map(|entry| entry.at).min() else { return Lines::None };
    match others.into_iter().find(|entry| entry.at >= first) {
        Some(other) => Lines::Mixed(other.run),
        None => Lines::Own(own),
    }
}

fn entry(item: &HashMap<String, AttributeValue>) -> Option<Entry> {
    let text = |name: &str| item.get(name)?.as_s().ok().cloned();
    fn number<N: std::str::FromStr>(
        item: &HashMap<String, AttributeValue>,
        name: &str,
    ) -> Option<N> {
        item.get(name)?.as_n().ok()?.parse().ok()
    }
    Some(Entry {
        run: text("run")?,
        stream: text("stream")?,
        at: number(item, "at")?,
        number: number(item, "number")?,
        is_effect: text("step")? == "effect",
        order: number(item, "order")?,
        message: text("message")?,
        request: text("request")?,
        fence: number(item, "fence")?,
    })
}

/// The keys and the statuses of the table's records.
pub(crate) async fn records(
    clients: &Clients,
    stack: &Stack,
) -> Result<BTreeMap<String, String>, Failure> {
    let request = clients
        .dynamodb
        .scan()
        .table_name(&stack.table)
        .consistent_read(true)
        .projection_expression("#id, #status")
        .expression_attribute_names("#id", "id")
        .expression_attribute_names("#status", "status");
    let mut pages = request.into_paginator().items().send();
    let mut records = BTreeMap::new();
    while let Some(item) = pages.next().await {
        let item = item.map_err(|error| failed("Scan of the table", error))?;
        let text = |name: &str| item.get(name)?.as_s().ok().cloned();
        let id = text("id").unwrap_or_default();
        if id != BURST {
            records.insert(id, text("status").unwrap_or_default());
        }
    }
    Ok(records)
}

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
    use super::*;

    #[test]
    fn another_run_at_the_same_time_is_noticed() {
        let line = |run: &str, at| Entry {
            run: run.to_owned(),
            stream: "s".to_owned(),
            at,
            number: 1,
            is_effect: false,
            order: 1,
            message: "m".to_owned(),
            request: "q".to_owned(),
            fence: 1,
        };
        let own = vec![line("r", 5), line("r", 9)];
        let with = |at| own.iter().cloned().chain([line("x", at)]).collect();
        assert_eq!(lines_of("r", with(4)), Lines::Own(own.clone()), "it had ended before");
        assert_eq!(lines_of("r", with(6)), Lines::Mixed("x".to_owned()));
        assert_eq!(lines_of("r", vec![line("x", 4)]), Lines::None);
    }

    #[test]
    fn dead_letters_of_the_run_are_recognised() {
        let order = r#"{"run":"r","order":1}"#;
        assert!(is_of(order, "r"));
        assert!(!is_of(order, "another") && !is_of("text", "r"));
    }
}

#[cfg(test)]
mod logs_tests {
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
