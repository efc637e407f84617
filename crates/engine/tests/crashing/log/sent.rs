//! Messages that handlers publish: what is checked when one arrives.

use std::collections::BTreeMap;

use lambda_idempotency_core::{outbox::OutgoingMessage, record::Status};

use super::{Log, State};

/// How many messages each handler publishes.
pub(crate) const PUBLISHED: usize = 2;

/// The id of each message that has arrived, by the label of its record and its position.
pub(super) type Sent = BTreeMap<(String, usize), String>;

/// The body of a message.
pub(crate) fn body(label: &str, position: usize) -> String {
    format!("{label}:{position}")
}

impl Log {
    /// A message has arrived.
    pub(crate) fn arrived(&self, message: &OutgoingMessage) {
        let mut state = self.lock();
        let (label, position) = message.message().body().split_once(':').unwrap();
        let position: usize = position.parse().unwrap();
        state.note(|| format!("  message {position} of {label} arrives"));
        let is_completed =
            state.landed.iter().any(|(at, _, status)| *at == label && *status == Status::Completed);
        let mut wrong = Vec::new();
        if !is_completed {
            wrong.push("before its completion");
        }
        let in_order =
            (0..position).all(|before| state.sent.contains_key(&(label.to_owned(), before)));
        if !in_order {
            wrong.push("before the message before it");
        }
        let id = state.sent.entry((label.to_owned(), position)).or_default();
        if id.is_empty() {
            message.id().clone_into(id);
        } else if id != message.id() {
            wrong.push("again with another id");
        }
        let wrong = wrong.into_iter();
        state
            .violations
            .extend(wrong.map(|how| format!("message {position} of {label} arrives {how}")));
    }
}

impl State {
    /// Whether all messages of a record have arrived.
    pub(super) fn are_sent(&self, label: &str) -> bool {
        (0..PUBLISHED).all(|position| self.sent.contains_key(&(label.to_owned(), position)))
    }
}
