//! Sends the orders, and notes the ids that SQS gives their messages.

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use lambda_idempotency_chaos::EvidenceMessage;

use super::{
    clients::Clients,
    orders::{Message, Orders, To},
    stack::{Stack, failed},
};
use crate::failure::Failure;

/// The most that SQS takes at once.
const BATCH: usize = 10;

/// Sends those of the messages that go there, in order.
pub(crate) async fn send(
    clients: &Clients,
    stack: &Stack,
    orders: &Orders,
    messages: &[Message],
    to: To,
) -> Result<Vec<EvidenceMessage>, Failure> {
    let own: Vec<&Message> = messages.iter().filter(|message| message.to == to).collect();
    let mut sent = Vec::new();
    for batch in own.chunks(BATCH) {
        let ids = match to {
            To::Queue => to_queue(clients, &stack.queue, orders, batch, false).await?,
            To::Fifo => to_queue(clients, &stack.fifo, orders, batch, true).await?,
        };
        if ids.len() < batch.len() {
            let text = format!("the {} took {} of {} messages", to.name(), ids.len(), batch.len());
            return Err(Failure::from(text).remedy(AGAIN));
        }
        let messages = batch.iter().zip(ids);
        sent.extend(messages.map(|(message, id)| EvidenceMessage {
            id,
            order: message.order,
            dead_lettered: false,
        }));
    }
    Ok(sent)
}

const AGAIN: &str =
    "What was sent is handled, and audited by nobody. Begin again: a run has orders of its own.";

async fn to_queue(
    clients: &Clients,
    queue: &str,
    orders: &Orders,
    batch: &[&Message],
    is_fifo: bool,
) -> Result<Vec<String>, Failure> {
    let mut request = clients.sqs.send_message_batch().queue_url(queue);
    for (place, message) in batch.iter().enumerate() {
        let mut entry = SendMessageBatchRequestEntry::builder()
            .id(place.to_string())
            .message_body(orders.payload(message).to_string());
        if is_fifo {
            // Each copy has an id of its own, so that the queue does not drop what the function has to recognise.
            let id = format!("{}-{}-{}", orders.run, message.order, message.copy);
            // Dead letters of another run hold up no group of this one.
            let group = format!("{}-{}", orders.run, orders.group(message.order));
            entry = entry.message_group_id(group).message_deduplication_id(id);
        }
        request = request.entries(entry.build()?);
    }
    let answer = request.send().await.map_err(|error| failed("SendMessageBatch", error))?;
    let taken = answer.successful.into_iter().map(|entry| (entry.id, entry.message_id));
    Ok(in_order(taken.collect()))
}

/// The ids of messages, in the order of their places in the batch.
fn in_order(mut taken: Vec<(String, String)>) -> Vec<String> {
    taken.sort_by_key(|(place, _)| place.parse::<usize>().unwrap_or(usize::MAX));
    taken.into_iter().map(|(_, id)| id).collect()
}
