//! Sends messages to a table, which stands for a queue: an item for each id, with the number of its arrivals.

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, types::AttributeValue};
use lambda_idempotency::{
    clock::Timestamp,
    outbox::{Message, OutgoingMessage, SendError, Sender},
    store::BoxFuture,
};

use super::order::Order;

/// The sender of a shop that publishes messages for each order.
pub(super) struct Parcels {
    client: Client,
}

/// The messages for an order, to this table. They are in one group, which keeps their order.
pub(super) fn messages(table: &str, order: &Order) -> impl Iterator<Item = Message> {
    (1..=order.messages.unwrap_or(1)).map(move |part| {
        let body = format!("{} {part}", order.order_id);
        Message::new(table, body).with_group(&*order.order_id)
    })
}

impl Parcels {
    pub(super) async fn new() -> Self {
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        Self { client: Client::new(&config) }
    }

    async fn arrive(&self, message: &OutgoingMessage) -> Result<(), SendError> {
        let (id, message) = (message.id().to_owned(), message.message());
        let request = self
            .client
            .update_item()
            .table_name(message.destination())
            .key("id", AttributeValue::S(id))
            .update_expression("SET parcel = :parcel ADD arrivals :one")
            .expression_attribute_values(":parcel", AttributeValue::S(message.body().to_owned()))
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
        let failed = |error| SendError::new("the table did not answer").with_source(error);
        request.send().await.map(drop).map_err(|error| failed(error.into_service_error()))
    }
}

impl Sender for Parcels {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(messages.len());
            for message in messages {
                answers.push(self.arrive(message).await);
            }
            answers
        })
    }
}
