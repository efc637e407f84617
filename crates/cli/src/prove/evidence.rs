//! Puts together what was found, in the order of time, for the audit.

use std::collections::{BTreeMap, HashSet};

use lambda_idempotency_chaos::{Ended, Evidence, EvidenceMessage, Observed, What};

use super::{
    collect::{Collected, Entry, Invocation, invocations},
    orders::Orders,
};

/// How much the clock of Lambda's reports may be behind that of the function.
const CLOCK_MS: i64 = 1000;

pub(crate) const DIED: &str = "its process ended";
pub(crate) const TIMED_OUT: &str = "timed out";

impl Invocation {
    /// Whether a line of the ledger is of this invocation, or of an earlier try of the same event in this sandbox.
    fn is_of(&self, entry: &Entry) -> bool {
        let is_same = self.request_id == entry.request && self.stream == entry.stream;
        is_same && self.at + CLOCK_MS >= entry.at
    }
}

/// The course of a sandbox, in order, with times that never go back. Lambda can report the end of an invocation some
/// milliseconds after the next one has begun, so the request ids say which lines are before it.
fn of_sandbox<'e>(
    sandbox: u32,
    lines: impl Iterator<Item = &'e Entry>,
    ends: &[&Invocation],
) -> Vec<(i64, Observed)> {
    let mut of: BTreeMap<usize, Vec<&Entry>> = BTreeMap::new();
    for line in lines {
        let end = ends.iter().position(|end| end.is_of(line)).unwrap_or(ends.len());
        of.entry(end).or_default().push(line);
    }
    let mut observed = Vec::new();
    for number in 0..=ends.len() {
        let lines = of.remove(&number).unwrap_or_default();
        let lines = lines.into_iter().map(|entry| {
            let what = What::Handler {
                is_effect: entry.is_effect,
                order: entry.order,
                message: entry.message.clone(),
                fence: entry.fence,
            };
            (entry.at, what)
        });
        observed.extend(lines);
        let end = ends.get(number);
        observed.extend(end.map(|end| (end.at, What::Ended(end.ended, end.records.clone()))));
    }
    let mut latest = 0;
    let in_order = observed.into_iter().map(|(at, what)| {
        latest = at.max(latest);
        (latest, Observed { sandbox, what })
    });
    in_order.collect()
}

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
    /// The invocations of the run.
    pub(crate) invocations: Vec<Invocation>,
    ledger: Vec<Entry>,
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
        let observed = sandboxes.iter().flat_map(|(stream, sandbox)| {
            let own = ledger.iter().filter(|entry| entry.stream == *stream);
            let ends = invocations.iter().filter(|invocation| invocation.stream == *stream);
            of_sandbox(*sandbox, own, &ends.collect::<Vec<_>>())
        });
        let mut observed: Vec<_> = observed.collect();
        observed.sort_by_key(|(at, _)| *at);
        let mut messages = marked(messages, collected);
        messages.extend(copies(&messages, &ledger, collected));
        let evidence = Evidence {
            orders: orders.evidence(),
            messages,
            observed: observed.into_iter().map(|(_, observed)| observed).collect(),
            records: Vec::new(),
        };
        Self { evidence, invocations, ledger }
    }

    /// How many invocations ended in each way.
    pub(crate) fn ends(&self, orders: &Orders) -> BTreeMap<&'static str, u64> {
        let blocks = |one: &Invocation| {
            self.ledger.iter().any(|entry| one.is_of(entry) && orders.blocks(entry.order))
        };
        let mut ends = BTreeMap::new();
        for invocation in &self.invocations {
            let end = match invocation.ended {
                Ended::Answered => "answered",
                Ended::Died => DIED,
                Ended::TimedOut if blocks(invocation) => TIMED_OUT,
                Ended::TimedOut => "timed out, and no order blocked",
            };
            *ends.entry(end).or_default() += 1;
        }
        ends
    }

    /// How many lines of the ledger are of invocations whose ends Lambda has not reported: the report is not stored yet.
    pub(crate) fn unreported(&self) -> usize {
        let is_open = |entry: &&Entry| !self.invocations.iter().any(|one| one.is_of(entry));
        self.ledger.iter().filter(is_open).count()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::arguments::Fault;

    fn line(at: i64, request: &str, order: usize) -> Entry {
        Entry {
            run: "r".to_owned(),
            stream: "s".to_owned(),
            at,
            number: 1,
            is_effect: false,
            order,
            message: "m".to_owned(),
            request: request.to_owned(),
            fence: 1,
        }
    }

    fn end(at: i64, request: &str, ended: Ended) -> Invocation {
        Invocation {
            stream: "s".to_owned(),
            request_id: request.to_owned(),
            at,
            ended,
            records: Vec::new(),
        }
    }

    /// The end of the first invocation is reported after the second has begun.
    #[test]
    fn lines_are_of_their_invocation_whatever_the_clocks_say() {
        let lines = [line(10, "q1", 1), line(18, "q2", 2), line(40, "q3", 3)];
        let (first, second) = (end(20, "q1", Ended::Answered), end(30, "q2", Ended::Answered));
        let seen = of_sandbox(0, lines.iter(), &[&first, &second]);
        let seen: Vec<(i64, Option<usize>)> = seen
            .into_iter()
            .map(|(at, observed)| match observed.what {
                What::Handler { order, .. } => (at, Some(order)),
                What::Ended(..) => (at, None),
            })
            .collect();
        let expected = [(10, Some(1)), (20, None), (20, Some(2)), (30, None), (40, Some(3))];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_time_out_that_no_order_asked_for_is_counted_by_itself() {
        let orders = Orders::new("r".to_owned(), 200, &[Fault::Hang]);
        let blocks = (0..200).find(|order| orders.blocks(*order)).unwrap();
        let places = (0..200).find(|order| !orders.blocks(*order)).unwrap();
        let whole = Whole {
            evidence: Evidence::default(),
            invocations: vec![end(20, "q1", Ended::TimedOut), end(30, "q2", Ended::TimedOut)],
            ledger: vec![line(10, "q1", blocks), line(25, "q2", places)],
        };
        let unasked = "timed out, and no order blocked";
        assert_eq!(whole.ends(&orders), BTreeMap::from([(TIMED_OUT, 1), (unasked, 1)]));
        assert_eq!(whole.unreported(), 0);
    }
}
