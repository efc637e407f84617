//! Sends the orders, and notes the ids that the services give their messages.

use std::time::Duration;

use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_sns::types::PublishBatchRequestEntry;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use lambda_idempotency_chaos::EvidenceMessage;

use super::{
    clients::Clients,
    orders::{Message, Orders, To},
    stack::{Stack, failed},
};
use crate::failure::Failure;

/// The most that each of the services takes at once.
const BATCH: usize = 10;

/// How long it waits after a batch of events. Lambda tries an event three times only, so the table has to take all of
/// them, also one that has no unused capacity: ten write units a second, and an order takes two.
const PACE: Duration = Duration::from_secs(2);

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
        if !to.is_queue() && !sent.is_empty() {
            tokio::time::sleep(PACE).await;
        }
        let ids = match to {
            To::Queue => to_queue(clients, &stack.queue, orders, batch, false).await?,
            To::Fifo => to_queue(clients, &stack.fifo, orders, batch, true).await?,
            To::Topic => to_topic(clients, &stack.topic, orders, batch).await?,
            To::Bus => to_bus(clients, &stack.bus, orders, batch).await?,
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

async fn to_topic(
    clients: &Clients,
    topic: &str,
    orders: &Orders,
    batch: &[&Message],
) -> Result<Vec<String>, Failure> {
    let mut request = clients.sns.publish_batch().topic_arn(topic);
    for (place, message) in batch.iter().enumerate() {
        let entry = PublishBatchRequestEntry::builder()
            .id(place.to_string())
            .message(orders.payload(message).to_string());
        request = request.publish_batch_request_entries(entry.build()?);
    }
    let answer = request.send().await.map_err(|error| failed("PublishBatch", error))?;
    let taken = answer.successful.unwrap_or_default().into_iter();
    Ok(in_order(taken.filter_map(|entry| Some((entry.id?, entry.message_id?))).collect()))
}

async fn to_bus(
    clients: &Clients,
    bus: &str,
    orders: &Orders,
    batch: &[&Message],
) -> Result<Vec<String>, Failure> {
    let mut request = clients.events.put_events();
    for message in batch {
        let entry = PutEventsRequestEntry::builder()
            .event_bus_name(bus)
            .source("lambda-idempotency.prove")
            .detail_type("Order")
            .detail(orders.payload(message).to_string());
        request = request.entries(entry.build());
    }
    let answer = request.send().await.map_err(|error| failed("PutEvents", error))?;
    let entries = answer.entries.unwrap_or_default().into_iter();
    Ok(entries.filter_map(|entry| entry.event_id).collect())
}

/// The ids of messages, in the order of their places in the batch.
fn in_order(mut taken: Vec<(String, String)>) -> Vec<String> {
    taken.sort_by_key(|(place, _)| place.parse::<usize>().unwrap_or(usize::MAX));
    taken.into_iter().map(|(_, id)| id).collect()
}
