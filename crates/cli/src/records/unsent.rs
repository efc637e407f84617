//! The messages of a record that are not known to be sent: how many, where they go, and their ids. Their bodies are
//! payloads, and are shown only if they were asked for.

use std::fmt::Write as _;

use lambda_idempotency_core::{
    key::Key,
    outbox::{OutboxError, OutgoingMessage, messages},
    record::IdempotencyRecord,
};
use serde_json::{Value, json};

/// What is known of the messages.
enum Unsent {
    Messages(Vec<OutgoingMessage>),
    /// There are some, of so many bytes.
    Unreadable(usize),
}

fn unsent(key: &Key, record: &IdempotencyRecord) -> Option<Unsent> {
    let text = record.outbox.as_deref()?;
    Some(match messages(key, record) {
        Ok(messages) => Unsent::Messages(messages),
        Err(OutboxError) => Unsent::Unreadable(text.len()),
    })
}

/// Lines about them.
pub(crate) fn text(key: &Key, record: &IdempotencyRecord, shows_bodies: bool) -> String {
    let mut out = String::new();
    match unsent(key, record) {
        None => {}
        Some(Unsent::Unreadable(bytes)) => {
            let _ = writeln!(
                out,
                "  unsent messages of {bytes} bytes, which are encrypted or of a newer version: the next delivery or a \
                 relay sends them"
            );
        }
        Some(Unsent::Messages(messages)) => {
            let count = messages.len();
            let _ = writeln!(
                out,
                "  unsent messages: {count}; the next delivery or a relay sends them"
            );
            for message in &messages {
                let (to, id) = (message.message().destination(), message.id());
                let _ = writeln!(out, "    to {to}, id {id}");
                if shows_bodies {
                    let _ = writeln!(out, "      {}", message.message().body());
                }
            }
        }
    }
    out
}

/// The same as JSON: `null` if there are none.
pub(crate) fn json(key: &Key, record: &IdempotencyRecord, shows_bodies: bool) -> Value {
    match unsent(key, record) {
        None => Value::Null,
        Some(Unsent::Unreadable(bytes)) => json!({ "count": null, "bytes": bytes }),
        Some(Unsent::Messages(messages)) => {
            let shown = messages.iter().map(|message| {
                json!({
                    "id": message.id(),
                    "destination": message.message().destination(),
                    "body_bytes": message.message().body().len(),
                    "body": shows_bodies.then(|| message.message().body()),
                })
            });
            let shown: Vec<_> = shown.collect();
            json!({ "count": shown.len(), "messages": shown })
        }
    }
}
