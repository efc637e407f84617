//! Requests whose handlers publish messages.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use lambda_http::{
    Request,
    tower::{Layer as _, ServiceExt as _, service_fn},
};
use lambda_idempotency::{
    Call,
    clock::Timestamp,
    http::Http,
    outbox::{MemorySender, Message, OutgoingMessage, SendError, Sender},
    store::BoxFuture,
};

use crate::support::{World, charges, post};

/// A sender that is out of order until it is mended.
#[derive(Default)]
struct Wire {
    sent: MemorySender,
    is_mended: AtomicBool,
}

impl Sender for Wire {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        if self.is_mended.load(Ordering::SeqCst) {
            return self.sent.send(messages, call_deadline);
        }
        Box::pin(async move { messages.iter().map(|_| Err(SendError::new("a test"))).collect() })
    }
}

#[tokio::test]
async fn a_client_gets_the_response_once_its_messages_are_sent() {
    let (world, wire) = (World::instant(), Arc::<Wire>::default());
    let layer = world
        .idempotency()
        .with_sender(Arc::clone(&wire))
        .http(&charges(), Http::by_header())
        .unwrap();
    let handler = world.clone();
    let service = service_fn(move |request: Request| {
        let call = request.extensions().get::<Call>().unwrap();
        call.publish(Message::new("receipts", "{}")).unwrap();
        handler.handle(request)
    });
    let send = || layer.layer(service.clone()).oneshot(post("k-1", "EUR 5.00"));
    let held_back = send().await.unwrap();
    assert_eq!(held_back.status(), 503);
    let problem = String::from_utf8_lossy(held_back.body()).into_owned();
    assert!(problem.contains("unsent") && problem.contains("with the same key"), "{problem}");
    wire.is_mended.store(true, Ordering::SeqCst);
    let response = send().await.unwrap();
    assert_eq!((response.status().as_u16(), world.calls()), (201, 1));
    assert_eq!(wire.sent.sent().len(), 1);
}
