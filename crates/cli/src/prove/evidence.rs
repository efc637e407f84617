//! Puts together what was found, in the order of time, for the audit and for the page.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use lambda_idempotency_chaos::{
    Ended, Evidence, EvidenceMessage, Observed, Story, StoryEffect, StoryInvocation, What,
};
use lambda_idempotency_local::{Disposition, Invocation as Told, InvocationResult, Usage};

use super::{
    collect::{Collected, Entry},
    logs::{Invocation, invocations},
    orders::Orders,
};

/// How much the clock of Lambda's reports may be behind that of the function.
const CLOCK_MS: i64 = 1000;

/// The messages, with those that are in a dead-letter queue marked, and the invocations that were logged.
pub(crate) fn logged(
    orders: &Orders,
    messages: &[EvidenceMessage],
    collected: &Collected,
) -> Evidence {
    let observed = invocations(collected.lines()).into_iter().map(|invocation| Observed {
        sandbox: 0,
        what: What::Ended(invocation.ended, invocation.records),
    });
    Evidence {
        orders: orders.evidence(),
        messages: marked(messages, collected),
        observed: observed.collect(),
        records: Vec::new(),
    }
}

/// Everything, at first without the store's records.
pub(crate) struct Whole {
    pub(crate) evidence: Evidence,
    /// Those of the run.
    pub(crate) invocations: Vec<Invocation>,
    ledger: Vec<Entry>,
    sandboxes: BTreeMap<String, u32>,
}

impl Whole {
    pub(crate) fn new(
        orders: &Orders,
        messages: &[EvidenceMessage],
        collected: &Collected,
        mut ledger: Vec<Entry>,
    ) -> Self {
        ledger.sort_by_key(|entry| (entry.at, entry.number));
        let first = ledger.first().map_or(0, |entry| entry.at);
        let mut invocations = invocations(collected.lines());
        // The function's clock says when the run began. Earlier invocations are of another run.
        invocations.retain(|invocation| invocation.at >= first);
        let streams = ledger.iter().map(|entry| &entry.stream);
        let streams = streams.chain(invocations.iter().map(|invocation| &invocation.stream));
        let mut sandboxes = BTreeMap::new();
        for stream in streams {
            let next = u32::try_from(sandboxes.len()).unwrap_or(u32::MAX);
            sandboxes.entry(stream.clone()).or_insert(next);
        }
        let sandbox = |stream: &str| sandboxes.get(stream).copied().unwrap_or_default();
        let handlers = ledger.iter().map(|entry| {
            let what = What::Handler {
                is_effect: entry.is_effect,
                order: entry.order,
                message: entry.message.clone(),
                fence: entry.fence,
            };
            (entry.at, 0, Observed { sandbox: sandbox(&entry.stream), what })
        });
        let ends = invocations.iter().map(|invocation| {
            let what = What::Ended(invocation.ended, invocation.records.clone());
            (invocation.at, 1, Observed { sandbox: sandbox(&invocation.stream), what })
        });
        let mut observed: Vec<_> = handlers.chain(ends).collect();
        observed.sort_by_key(|(at, kind, _)| (*at, *kind));
        let mut messages = marked(messages, collected);
        messages.extend(copies(&messages, &ledger, collected));
        let evidence = Evidence {
            orders: orders.evidence(),
            messages,
            observed: observed.into_iter().map(|(.., observed)| observed).collect(),
            records: Vec::new(),
        };
        Self { evidence, invocations, ledger, sandboxes }
    }

    /// What happened, for the page.
    pub(crate) fn story(&self) -> Story {
        let (began, sandboxes) = (Instant::now(), &self.sandboxes);
        let starts = self.invocations.iter().map(|one| one.at - one.ms as i64);
        let first =
            starts.chain(self.ledger.iter().map(|entry| entry.at)).min().unwrap_or_default();
        let after = |at: i64| began + Duration::from_millis(u64::try_from(at - first).unwrap_or(0));
        let names = self.evidence.messages.iter().enumerate().map(|(number, message)| {
            (message.id.as_str(), format!("m-{}-{number} {}", message.order, message.id))
        });
        let names: BTreeMap<&str, String> = names.collect();
        let name = |id: &str| names.get(id).cloned().unwrap_or_else(|| id.to_owned());
        let sandbox = |stream: &str| sandboxes.get(stream).copied().unwrap_or_default();
        let told = |one: &Invocation| {
            let mut records = one.records.clone();
            for record in &mut records {
                record.record = name(&record.record);
            }
            let messages = one.records.iter().map(|record| {
                let done = Evidence::acknowledges(&record.outcome);
                let end = if done { Disposition::Done } else { Disposition::Returned };
                (name(&record.record), end)
            });
            StoryInvocation {
                messages: messages.collect(),
                invocation: Told {
                    request_id: one.request_id.clone(),
                    pid: sandbox(&one.stream),
                    began: after(one.at - one.ms as i64),
                    result: match one.ended {
                        Ended::Answered => InvocationResult::Response(serde_json::Value::Null),
                        Ended::TimedOut => InvocationResult::TimedOut,
                        Ended::Died => InvocationResult::Exited { code: None, signal: None },
                    },
                    duration: Duration::from_secs_f64(one.ms.max(0.0) / 1000.0),
                    records,
                    dynamodb: Usage::default(),
                    requests: Vec::new(),
                },
            }
        };
        let effects = self.ledger.iter().filter(|entry| entry.is_effect).map(|entry| StoryEffect {
            at: after(entry.at),
            pid: sandbox(&entry.stream),
            message: name(&entry.message),
            key_hash: None,
            name: "placed".to_owned(),
        });
        Story {
            began,
            invocations: self.invocations.iter().map(told).collect(),
            effects: effects.collect(),
            faults: Vec::new(),
        }
    }

    /// How many invocations ended in each way.
    pub(crate) fn ends(&self) -> BTreeMap<Ended, u64> {
        let mut ends = BTreeMap::new();
        for invocation in &self.invocations {
            *ends.entry(invocation.ended).or_default() += 1;
        }
        ends
    }

    /// How many lines of the ledger no report of Lambda's follows: those of their invocation are not stored yet.
    pub(crate) fn unreported(&self) -> usize {
        let is_open = |entry: &&Entry| {
            !self
                .invocations
                .iter()
                .any(|one| one.stream == entry.stream && one.at + CLOCK_MS >= entry.at)
        };
        self.ledger.iter().filter(is_open).count()
    }

    /// The lines of the ledger.
    pub(crate) fn lines(&self) -> usize {
        self.ledger.len()
    }
}

fn marked(messages: &[EvidenceMessage], collected: &Collected) -> Vec<EvidenceMessage> {
    let mark = |message: &EvidenceMessage| EvidenceMessage {
        dead_lettered: collected.dead.contains(&message.id),
        ..message.clone()
    };
    messages.iter().map(mark).collect()
}

/// Messages of the run whose ids no service has told: the SDK sent a request again, because the answer to the first was
/// lost.
fn copies(
    messages: &[EvidenceMessage],
    ledger: &[Entry],
    collected: &Collected,
) -> Vec<EvidenceMessage> {
    let mut known: HashSet<&str> = messages.iter().map(|message| message.id.as_str()).collect();
    let unknown = ledger.iter().filter(|entry| known.insert(&entry.message));
    let copy = |entry: &Entry| EvidenceMessage {
        id: entry.message.clone(),
        order: entry.order,
        dead_lettered: collected.dead.contains(&entry.message),
    };
    unknown.map(copy).collect()
}
