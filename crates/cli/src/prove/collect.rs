//! What is found in the account: log lines, dead letters, queues, the ledger and the table.

use std::collections::{BTreeMap, HashMap, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::Value;

use super::{
    clients::Clients,
    logs::LogLine,
    stack::{Stack, failed},
};
use crate::failure::Failure;

/// How far back a look at the log goes beyond its latest line: lines may be stored late.
const OVERLAP_MS: i64 = 120_000;

/// The item with which the function uses up the table's capacity (`docs/prove/src/burst.rs`).
const BURST: &str = "prove-burst";

/// What was found so far of a run.
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
            // Those that stay come again when they are visible.
            let ids = messages.iter().filter_map(|message| message.message_id.clone());
            if ids.filter(|id| seen.insert(id.clone())).count() == 0 {
                return Ok(());
            }
            for message in messages {
                let body = message.body.unwrap_or_default();
                // Those of another run stay.
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
