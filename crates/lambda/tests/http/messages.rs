//! Requests whose handlers publish messages.

use std::sync::Arc;

use lambda_http::{
    Request,
    tower::{Layer as _, ServiceExt as _, service_fn},
};
use lambda_idempotency::{Call, http::Http, outbox::Message};

use crate::{
    support::{World, charges, post},
    wire::Wire,
};

#[tokio::test]
async fn a_client_gets_the_response_once_its_messages_are_sent() {
    let (world, wire) = (World::instant(), Arc::new(Wire::down()));
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
    wire.cut(false);
    let response = send().await.unwrap();
    assert_eq!((response.status().as_u16(), world.calls()), (201, 1));
    assert_eq!(wire.sent(), 1);
}
