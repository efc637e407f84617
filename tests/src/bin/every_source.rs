//! A function that takes orders from every source but HTTP, with the scripted shop.

mod scripted;

use lambda_idempotency::{
    Call, Failure, Operation,
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, EventBridge, Invoke, Kafka, Kinesis, Pipe, RabbitMq,
        S3, Scheduler, Sqs,
    },
};
use lambda_runtime::Error;
use serde::Deserialize;

use crate::scripted::{Order, Shop};

/// A change of a table that holds orders.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    new_image: Order,
}

/// A change of a document, with the members that this function needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inserted {
    full_document: Order,
}

/// An object whose name is the id of its order.
#[derive(Deserialize)]
struct Stored {
    s3: Place,
}

#[derive(Deserialize)]
struct Place {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    key: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let (shop, idempotency) = Shop::from_env().await?;
    let by = |name: &'static str, key| shop.operation(Operation::new(name).key(key));
    let by_order = |name| by(name, "orderId");
    let place = {
        let shop = shop.clone();
        move |order: Order, call: Call| {
            let shop = shop.clone();
            async move { shop.place(order, call).await }
        }
    };
    let index = {
        let shop = shop.clone();
        move |change: Change, call: Call| {
            let shop = shop.clone();
            async move { shop.place(change.new_image, call).await }
        }
    };
    let copy = {
        let shop = shop.clone();
        move |change: Inserted, call: Call| {
            let shop = shop.clone();
            async move { shop.place(change.full_document, call).await }
        }
    };
    let import = {
        let shop = shop.clone();
        move |stored: Stored, call: Call| {
            let shop = shop.clone();
            async move { shop.place(named(stored.s3.object.key)?, call).await }
        }
    };
    let function = idempotency
        .function()
        .on(Sqs::new(), &by_order("queued"), place.clone())
        .on(Kinesis::new(), &by_order("streamed"), place.clone())
        .on(DynamoDbStream::new(), &by("changed", "newImage.orderId"), index)
        .on(DocumentDb::new(), &by("copied", "fullDocument.orderId"), copy)
        .on(Kafka::new(), &by_order("published"), place.clone())
        .on(S3::new(), &by("stored", "s3.object.key"), import)
        .on(ActiveMq::new(), &by_order("sent"), place.clone())
        .on(RabbitMq::new(), &by_order("routed"), place.clone())
        .on(EventBridge::new(), &by_order("announced"), place.clone())
        .on(
            (
                Pipe::of(Sqs::new()),
                Pipe::of(Kinesis::new()),
                Pipe::of(Kafka::new()),
                Pipe::of(ActiveMq::new()),
                Pipe::of(RabbitMq::new()),
            ),
            &by_order("piped"),
            place.clone(),
        )
        // These two have their default identities: the scheduled time and the request id.
        .on(Scheduler::new(), &shop.operation(Operation::new("scheduled")), place.clone())
        .on(Invoke::by_request_id(), &shop.operation(Operation::new("invoked")), place)
        .build()?;
    lambda_runtime::run(function).await
}

fn named(id: String) -> Result<Order, Failure> {
    let order = serde_json::json!({ "orderId": id, "customer": "c", "sku": "s", "quantity": 1 });
    serde_json::from_value(order).map_err(Failure::permanent)
}
