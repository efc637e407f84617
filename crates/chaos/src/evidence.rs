//! The audit of a run that the rig did not drive: of a function in an AWS account.
//!
//! Whoever ran it has sent messages, and finds afterwards what the function wrote to its ledger, what Lambda and the
//! function logged, what is in the dead-letter queues, and the records of the store. [`Evidence`] holds that, and its
//! [`audit`](Evidence::audit) is the one that follows a run of the rig.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use lambda_idempotency_local::{Disposition, Outcome, RecordLine};

use crate::{
    audit::{Expected, ExpectedOrder, audit},
    findings::Findings,
    history::{End, Ending, History, Offence},
    kinds::Mode,
    ledger::{Line, Step},
    schedule,
    store::Row,
};

/// The evidence of a run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The orders, by their numbers.
    pub orders: Vec<EvidenceOrder>,
    /// The messages, in the order in which they were sent.
    pub messages: Vec<EvidenceMessage>,
    /// The observations, in the order of time.
    pub observed: Vec<Observed>,
    /// The keys of the store's records, and their statuses as DynamoDB has them.
    pub records: Vec<(String, String)>,
}

/// The demands of an order on the function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvidenceOrder {
    /// It fails permanently: each of its messages ends in a dead-letter queue.
    pub fails_permanently: bool,
    /// Its first attempt ends the process.
    pub ends_process: bool,
    /// Its message group, where the source keeps an order.
    pub group: Option<usize>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceMessage {
    /// The id that its service gave it.
    pub id: String,
    /// The number of its order.
    pub order: usize,
    /// Whether it is in a dead-letter queue.
    pub dead_lettered: bool,
}

/// Something that happened in a sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The sandbox, by a number.
    pub sandbox: u32,
    /// The observation.
    pub what: What,
}

/// An observation in a sandbox.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A handler started, or had its effect: a line of the ledger.
    Handler {
        /// Whether it is the effect.
        is_effect: bool,
        /// The number of the order.
        order: usize,
        /// The id of the message.
        message: String,
        /// The fence of the attempt.
        fence: u64,
    },
    /// An invocation ended.
    Ended(Ended, Vec<RecordLine>),
}

/// How an invocation ended, as Lambda logs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The function answered, or failed in a way that it chose.
    Answered,
    /// Its time was over, and Lambda ended its process.
    TimedOut,
    /// Its process ended.
    Died,
}

impl Evidence {
    /// Compares everything with what the documentation guarantees.
    #[must_use]
    pub fn audit(&self) -> Findings {
        let mut reading = Reading::new(self);
        for observed in &self.observed {
            reading.read(observed);
        }
        let left = reading.finish();
        let rows = self.records.iter();
        let rows = rows.map(|(key, status)| Row::new(key, status));
        audit(&self.expected(), &reading.history, &rows.collect::<Vec<_>>(), left)
    }

    /// The messages that were neither acknowledged nor dead-lettered, by the log. A message that was logged in an
    /// invocation that did not answer is delivered again.
    pub fn open(&self) -> impl Iterator<Item = &EvidenceMessage> {
        let mut done: HashSet<&str> = HashSet::new();
        for observed in &self.observed {
            let What::Ended(Ended::Answered, lines) = &observed.what else { continue };
            let acknowledged = lines.iter().filter(|line| Evidence::acknowledges(&line.outcome));
            done.extend(acknowledged.map(|line| line.record.as_str()));
        }
        let is_open = move |message: &&EvidenceMessage| {
            !message.dead_lettered && !done.contains(message.id.as_str())
        };
        self.messages.iter().filter(is_open)
    }

    /// The orders whose completion was lost at some time. Their records stay as they are until another message comes.
    #[must_use]
    pub fn completions_lost(&self) -> BTreeSet<usize> {
        let mut lost: HashSet<&str> = HashSet::new();
        for observed in &self.observed {
            let What::Ended(_, lines) = &observed.what else { continue };
            let lines = lines.iter().filter(|line| line.outcome == Outcome::CompletionLost);
            lost.extend(lines.map(|line| line.record.as_str()));
        }
        let messages = self.messages.iter().filter(|message| lost.contains(message.id.as_str()));
        messages.map(|message| message.order).collect()
    }

    /// How often each outcome was logged.
    #[must_use]
    pub fn outcomes(&self) -> BTreeMap<String, u64> {
        let mut outcomes = BTreeMap::new();
        for observed in &self.observed {
            let What::Ended(_, lines) = &observed.what else { continue };
            for line in lines {
                *outcomes.entry(line.outcome.as_str().to_owned()).or_default() += 1;
            }
        }
        outcomes
    }

    /// Whether the source deletes a message of which this was logged.
    #[must_use]
    pub fn acknowledges(outcome: &Outcome) -> bool {
        matches!(
            outcome,
            Outcome::Executed
                | Outcome::Unprotected
                | Outcome::Replayed
                | Outcome::Coalesced
                | Outcome::Superseded
                | Outcome::CompletionLost
        )
    }

    fn expected(&self) -> Expected {
        let sequence: Vec<usize> = self.messages.iter().map(|message| message.order).collect();
        let sent: HashSet<usize> = sequence.iter().copied().collect();
        let order = |(number, order): (usize, &EvidenceOrder)| ExpectedOrder {
            is_sent: sent.contains(&number),
            is_doomed: order.fails_permanently,
            group: order.group,
        };
        let orders = self.orders.iter().enumerate().map(order).collect();
        Expected { mode: Mode::Claim, is_users: false, orders, sequence }
    }
}

/// The history, while it is read.
struct Reading<'a> {
    evidence: &'a Evidence,
    history: History,
    /// The names of messages, which say their orders as those of the rig do, by their ids.
    names: HashMap<&'a str, (usize, String)>,
    /// The orders whose handlers have started.
    started: HashSet<usize>,
    /// The attempts that started for the first time in a sandbox since its last invocation ended.
    running: HashMap<u32, Vec<usize>>,
    /// Messages that were acknowledged with the result of another execution.
    answered: Vec<&'a str>,
}

impl<'a> Reading<'a> {
    fn new(evidence: &'a Evidence) -> Self {
        let name = |(number, message): (usize, &'a EvidenceMessage)| {
            let name = format!("m-{}-{number}", message.order);
            (message.id.as_str(), (message.order, name))
        };
        Self {
            evidence,
            history: History::default(),
            names: evidence.messages.iter().enumerate().map(name).collect(),
            started: HashSet::new(),
            running: HashMap::new(),
            answered: Vec::new(),
        }
    }

    fn read(&mut self, observed: &'a Observed) {
        let sandbox = observed.sandbox;
        match &observed.what {
            What::Handler { is_effect, order, message, fence } => {
                let Some((_, name)) = self.names.get(message.as_str()) else {
                    let what = format!("the ledger names a message that was not sent: {message}");
                    return self.history.offend(Offence::Ledger, what);
                };
                let line = Line {
                    step: if *is_effect { Step::Effect } else { Step::Start },
                    order: schedule::id(*order),
                    message: name.clone(),
                    pid: sandbox,
                    fence: *fence,
                    name: "placed".to_owned(),
                };
                self.history.line(&line);
                if self.started.insert(*order) {
                    self.running.entry(sandbox).or_default().push(*order);
                }
            }
            What::Ended(ended, lines) => self.ended(sandbox, *ended, lines),
        }
    }

    fn ended(&mut self, sandbox: u32, ended: Ended, lines: &'a [RecordLine]) {
        let orders = self.running.remove(&sandbox).unwrap_or_default();
        let mut orders = orders.iter().filter_map(|number| self.evidence.orders.get(*number));
        let end = match ended {
            Ended::Answered => End::Answered,
            Ended::TimedOut => End::TimedOut,
            Ended::Died if orders.any(|order| order.ends_process) => End::Killed,
            Ended::Died => End::Crashed,
        };
        // Lines about messages of somebody else are not evidence.
        let own = lines.iter().filter_map(|line| {
            let (_, name) = self.names.get(line.record.as_str())?;
            Some(RecordLine { record: name.clone(), ..line.clone() })
        });
        let own: Vec<RecordLine> = own.collect();
        self.history.ended_as(Ending {
            pid: sandbox,
            overran: end == End::TimedOut,
            failed: (end == End::Crashed)
                .then(|| "the process ended, and no order asked for that".to_owned()),
            end,
            stopped: false,
            records: &own,
        });
        for line in lines.iter().filter(|line| Evidence::acknowledges(&line.outcome)) {
            let Some((order, name)) = self.names.get(line.record.as_str()) else { continue };
            // The effect was in this sandbox, by whose clock both times are, unless another execution had it.
            if matches!(line.outcome, Outcome::Executed | Outcome::Unprotected) {
                let doomed = is_doomed(self.evidence, *order);
                self.history.disposed(name, doomed, Disposition::Done);
            } else {
                self.answered.push(&line.record);
            }
        }
    }

    /// Adds the ends of messages that were answered from other executions, and of dead letters. Returns how many messages are left.
    fn finish(&mut self) -> usize {
        for message in std::mem::take(&mut self.answered) {
            self.end_one(message, Disposition::Done);
        }
        for message in self.evidence.messages.iter().filter(|message| message.dead_lettered) {
            self.end_one(&message.id, Disposition::DeadLettered);
        }
        self.evidence.open().count()
    }

    fn end_one(&mut self, message: &str, disposition: Disposition) {
        if let Some((order, name)) = self.names.get(message) {
            let doomed = is_doomed(self.evidence, *order);
            self.history.disposed(name, doomed, disposition);
        }
    }
}

fn is_doomed(evidence: &Evidence, order: usize) -> bool {
    evidence.orders.get(order).is_some_and(|order| order.fails_permanently)
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
