//! An outbox: an order's message is stored with its completion, and sent before its delivery is acknowledged. Here the
//! queue is down at first: the second delivery sends the message, and does not place the order again. The consumer gets
//! the message twice, and packs one parcel. Senders for SQS, SNS and EventBridge are in `docs/examples/senders`.
//!
//! ```console
//! $ cargo run -p lambda-idempotency --example outbox
//! ```

use std::sync::{Arc, Once};

use lambda_idempotency::outbox::{MemorySender, Message, OutgoingMessage, SendError, Sender};
use lambda_idempotency::{
    Call, Failure, Idempotency, MemoryStore, Operation, clock::Timestamp, keys::record, testing,
};
use lambda_idempotency::{source::Sqs, store::BoxFuture};
use serde_json::{Value, json};

/// A queue that is down at first, and keeps all later messages.
struct Queue(MemorySender, Once);

impl Sender for Queue {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        if self.1.is_completed() {
            return self.0.send(messages, call_deadline);
        }
        self.1.call_once(|| println!("  the queue is down"));
        Box::pin(async { messages.iter().map(|_| Err(SendError::new("it is down"))).collect() })
    }
}

async fn place(order: Value, call: Call) -> Result<(), Failure> {
    println!("  placed {order}");
    Ok(call.publish(Message::new("parcels", order.to_string()))?)
}

async fn pack(parcel: Value, _: Call) -> Result<(), Failure> {
    println!("  packed {parcel}");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = Arc::new(Queue(MemorySender::new(), Once::new()));
    let idempotency = Idempotency::new(MemoryStore::new()).with_sender(Arc::clone(&queue));
    let orders = idempotency.on(Sqs::new(), &Operation::new("place-order").key("id"), place)?;
    let id = record(r#"messageAttributes."idempotency-key".stringValue"#);
    let parcels = idempotency.on(Sqs::new().key(id), &Operation::new("pack-parcel"), pack)?;
    let message = |body: &str, id: &str| {
        json!({ "Records": [{ "messageId": "m-1", "eventSource": "aws:sqs", "body": body,
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:queue",
            "messageAttributes": { OutgoingMessage::ID_ATTRIBUTE: { "stringValue": id } } }] })
    };
    for delivery in 1..=3 {
        println!("delivery {delivery} of the order");
        println!("  {}", testing::invoke(&orders, &message(r#"{"id":"o-1"}"#, "")).await?);
    }
    for sent in queue.0.sent().iter().chain(&queue.0.sent()) {
        println!("the message");
        testing::invoke(&parcels, &message(sent.message().body(), sent.id())).await?;
    }
    Ok(())
}
