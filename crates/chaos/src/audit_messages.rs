//! The audit of the messages that the function published.
//!
//! At the end every message of an order that was placed has arrived, with one id, and none of another order has. A
//! message that arrived again needs a cause that was observed on the attempt before.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lambda_idempotency_local::Outcome;

use crate::{
    expected::Expected,
    findings::{CopyCause, Findings},
    history::{End, History, Offence, Send},
    schedule::{self, is_grouped, order_of},
    sending::Answer,
};

/// Checks what arrived at the queue of the messages.
pub(crate) fn audit(findings: &mut Findings, expected: &Expected, history: &History) {
    let mut owners: HashMap<&str, (usize, usize)> = HashMap::new();
    for (number, order) in expected.orders.iter().enumerate() {
        let name = schedule::id(number);
        let mut parts: BTreeMap<usize, Vec<&Send>> = BTreeMap::new();
        for send in history.sends_of(number).filter(|send| send.arrival.answer.is_taken()) {
            parts.entry(send.arrival.part).or_default().push(send);
        }
        findings.sent += parts.len() as u64;
        let trace = || trace(history, number);
        if history.sends_of(number).any(|send| send.arrival.placed == Some(false)) {
            let what = format!("{name}: a message was sent before the order was placed");
            findings.violate(Offence::SentEarly, what, trace());
        }
        let expected = order.messages;
        match expected.checked_sub(parts.len()) {
            Some(0) => {}
            Some(missing) => {
                let what = format!("{name}: {missing} of {expected} message(s) never sent");
                findings.violate_times(Offence::Unsent, missing as u64, what, trace());
            }
            None => {
                let what = format!("{name}: {} messages instead of {expected}", parts.len());
                findings.violate(Offence::SentEarly, what, trace());
            }
        }
        for (part, sends) in &parts {
            let ids: BTreeSet<&str> = sends.iter().map(|send| &*send.arrival.id).collect();
            let taken = ids.iter().any(|id| {
                let owner = *owners.entry(*id).or_insert((number, *part));
                owner != (number, *part)
            });
            if ids.len() > 1 || taken {
                let what =
                    format!("{name}: message {part} has {} id(s), shared: {taken}", ids.len());
                findings.violate(Offence::MessageId, what, trace());
            }
            copies(findings, history, &name, sends, &trace);
        }
        let firsts = parts.values().filter_map(|sends| Some(sends.first()?.seen));
        if is_grouped(number) && !firsts.is_sorted() {
            let what = format!("{name}: its messages arrived in another order");
            findings.violate(Offence::OutOfOrder, what, trace());
        }
    }
}

/// Each arrival beyond the first, with the cause that was seen at the one before it.
fn copies(
    findings: &mut Findings,
    history: &History,
    name: &str,
    sends: &[&Send],
    trace: &dyn Fn() -> Vec<String>,
) {
    for pair in sends.windows(2) {
        let [before, copy] = pair else { continue };
        match cause(history, before, copy) {
            Some(cause) => *findings.copies.entry(cause).or_default() += 1,
            None => {
                let what = format!("{name}: message {} sent again", copy.arrival.part);
                findings.violate(Offence::Copied, what, trace());
            }
        }
    }
}

fn cause(history: &History, before: &Send, copy: &Send) -> Option<CopyCause> {
    if before.arrival.answer == Answer::Unanswered {
        return Some(CopyCause::Unanswered);
    }
    let first = history.invocations.get(before.invocation?)?;
    if first.end != End::Answered || first.stopped || first.overran {
        return Some(CopyCause::Ended);
    }
    let mut own = first.logged.iter();
    let of_order = |message: &str| order_of(message) == Some(before.arrival.order);
    if own.any(|(message, outcome)| of_order(message) && *outcome == Outcome::Unsent) {
        return Some(CopyCause::HeldUp);
    }
    let second = copy.invocation.and_then(|index| history.invocations.get(index));
    if second.is_some_and(|second| second.time.start < first.time.end) {
        return Some(CopyCause::AtOnce);
    }
    let has_failed = first.failed_requests.iter().any(|at| *at >= before.arrival.at);
    let is_unmarked = has_failed || first.unrecorded.iter().any(|message| of_order(message));
    is_unmarked.then_some(CopyCause::Unmarked)
}

/// One line for each attempt to send a message of an order.
fn trace(history: &History, order: usize) -> Vec<String> {
    let line = |send: &Send| {
        let invocation = send.invocation.and_then(|index| history.invocations.get(index));
        let end = invocation.map_or_else(
            || "outside of an invocation".to_owned(),
            |ended| {
                let own = ended.logged.iter();
                let own = own.filter(|(message, _)| order_of(message) == Some(order));
                let logged: Vec<_> = own.map(|(_, outcome)| outcome.as_str()).collect();
                let stopped = if ended.stopped { ", stopped" } else { "" };
                format!("{:?}{stopped}, logged [{}]", ended.end, logged.join(", "))
            },
        );
        let arrival = &send.arrival;
        format!(
            "message {} from process {}: at {}, {:?}, placed {:?}, {end}",
            arrival.part, arrival.pid, send.seen, arrival.answer, arrival.placed
        )
    };
    history.sends_of(order).map(line).collect()
}

#[cfg(test)]
#[path = "audit_messages_tests.rs"]
mod tests;
