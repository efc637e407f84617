//! The messages of a record that are not known to be sent: how many, where they go, and their ids. Their bodies are
//! payloads, and are shown only if they were asked for.

use lambda_idempotency_core::{
    key::Key,
    outbox::{OutboxError, messages},
    record::IdempotencyRecord,
};
use serde_json::{Value, json};

use super::view::push_line;

pub(crate) fn text(key: &Key, record: &IdempotencyRecord, shows_bodies: bool) -> String {
    let Some(outbox) = &record.outbox else { return String::new() };
    let Ok(messages) = messages(key, record) else {
        return format!(
            "  unsent messages of {} bytes, which are encrypted or of a newer version: the next delivery or a relay \
             sends them\n",
            outbox.len()
        );
    };
    let count = messages.len();
    let mut out = format!("  unsent messages: {count}; the next delivery or a relay sends them\n");
    for message in &messages {
        let (to, id) = (message.message().destination(), message.id());
        push_line(&mut out, format_args!("    to {to}, id {id}"));
        if shows_bodies {
            push_line(&mut out, format_args!("      {}", message.message().body()));
        }
    }
    out
}

/// The same as JSON: `null` if there are none.
pub(crate) fn json(key: &Key, record: &IdempotencyRecord, shows_bodies: bool) -> Value {
    let Some(outbox) = &record.outbox else { return Value::Null };
    match messages(key, record) {
        Err(OutboxError) => json!({ "count": null, "bytes": outbox.len() }),
        Ok(messages) => {
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
