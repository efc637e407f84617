//! Messages that are stored with a completion: what sources and callers are told, and what a consumer does with them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use lambda_idempotency::{
    Call, Failure, Function, Operation, RunError,
    clock::Timestamp,
    keys::record,
    outbox::{MemorySender, Message, OutgoingMessage, SendError, Sender},
    source::{EventBridge, Sns, Sqs},
    store::BoxFuture,
    testing,
};
use serde_json::{Value, json};

use crate::support::{World, batch, order};

/// Keeps messages, unless it is out of order.
#[derive(Default)]
pub(crate) struct Wire {
    kept: MemorySender,
    is_down: AtomicBool,
}

impl Sender for Wire {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        if !self.is_down.load(Ordering::SeqCst) {
            return self.kept.send(messages, call_deadline);
        }
        let down = messages.iter().map(|_| Err(SendError::new("the test has cut the wire")));
        let down = down.collect();
        Box::pin(async move { down })
    }
}

impl Wire {
    pub(crate) fn down() -> Self {
        Self { is_down: true.into(), ..Self::default() }
    }

    fn cut(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }
}

/// Publishes a message for each order.
async fn place(order: Value, call: Call) -> Result<(), Failure> {
    let body = json!({ "parcel": order["id"] }).to_string();
    call.publish(Message::new("parcels", body).with_attribute("tenant", "acme"))?;
    Ok(())
}

fn producer(world: &World, wire: &Arc<Wire>) -> Function {
    let idempotency = world.idempotency().with_sender(Arc::clone(wire));
    idempotency.on(Sqs::new(), &Operation::new("place-order").key("id"), place).unwrap()
}

async fn deliver(world: &World, function: &Function, event: &Value) -> Value {
    world.clock.drive(testing::invoke(function, event)).await.unwrap()
}

#[tokio::test]
async fn a_message_whose_messages_are_not_sent_is_named_and_its_handler_not_called_again() {
    let (world, wire) = (World::new(), Arc::<Wire>::default());
    let function = producer(&world, &wire);
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "")]);
    wire.cut(true);
    let returned = deliver(&world, &function, &event).await;
    let names = ["m-1", "m-2"].map(|id| json!({ "itemIdentifier": id }));
    assert_eq!(returned, json!({ "batchItemFailures": names }));
    wire.cut(false);
    for _ in 0..2 {
        let answer = deliver(&world, &function, &event).await;
        assert_eq!(answer, json!({ "batchItemFailures": [] }));
    }
    assert_eq!(wire.kept.sent().len(), 2);
}

/// The messages as their service delivers them.
fn sqs(message: &OutgoingMessage) -> Value {
    let text = |value: &str| json!({ "stringValue": value, "dataType": "String" });
    let mut attributes = json!({ OutgoingMessage::ID_ATTRIBUTE: text(message.id()) });
    for (name, value) in message.message().attributes() {
        attributes[name] = text(value);
    }
    json!({
        "messageId": "chosen by SQS, another one each time", "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:parcels",
        "body": message.message().body(), "messageAttributes": attributes,
    })
}

fn sns(message: &OutgoingMessage) -> Value {
    let id = json!({ "Type": "String", "Value": message.id() });
    json!({
        "EventSource": "aws:sns", "EventVersion": "1.0",
        "EventSubscriptionArn": "arn:aws:sns:eu-west-1:111122223333:parcels:1",
        "Sns": {
            "MessageId": "chosen by SNS", "Type": "Notification",
            "TopicArn": "arn:aws:sns:eu-west-1:111122223333:parcels",
            "Message": message.message().body(),
            "MessageAttributes": { OutgoingMessage::ID_ATTRIBUTE: id },
        },
    })
}

fn event_bridge(message: &OutgoingMessage) -> Value {
    let detail: Value = serde_json::from_str(message.message().body()).unwrap();
    json!({
        "version": "0", "id": "chosen by EventBridge", "detail-type": "OrderPlaced", "source": "shop",
        "account": "111122223333", "time": "2026-11-22T10:00:00Z", "region": "eu-west-1",
        "resources": [message.id()], "detail": detail,
    })
}

/// Two functions with a queue, a topic or an event bus between them. The first one's messages are sent twice.
#[tokio::test]
async fn a_consumer_with_the_id_as_its_key_drops_copies() {
    let (world, wire) = (World::new(), Arc::<Wire>::default());
    let first = producer(&world, &wire);
    deliver(&world, &first, &batch([order("m-1", "a", ""), order("m-2", "b", "")])).await;
    let sent = wire.kept.sent();
    let twice = || sent.iter().chain(&sent);
    assert_eq!(sent.len(), 2);

    let packed = Arc::new(AtomicUsize::new(0));
    let pack = || {
        let packed = Arc::clone(&packed);
        move |parcel: Value, _: Call| {
            assert!(parcel["parcel"].is_string());
            packed.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Failure>(()) }
        }
    };
    let idempotency = world.idempotency();

    let from_queue = Sqs::new().key(record(r#"messageAttributes."idempotency-key".stringValue"#));
    let queue = idempotency.on(from_queue, &Operation::new("pack-from-queue"), pack()).unwrap();
    for message in twice() {
        deliver(&world, &queue, &json!({ "Records": [sqs(message)] })).await;
    }
    assert_eq!(packed.swap(0, Ordering::SeqCst), 2);

    let from_topic = Sns::new().key(record(r#"Sns.MessageAttributes."idempotency-key".Value"#));
    let topic = idempotency.on(from_topic, &Operation::new("pack-from-topic"), pack()).unwrap();
    for message in twice() {
        deliver(&world, &topic, &json!({ "Records": [sns(message)] })).await;
    }
    assert_eq!(packed.swap(0, Ordering::SeqCst), 2);

    let from_bus = EventBridge::new().key(record("resources[0]"));
    let bus = idempotency.on(from_bus, &Operation::new("pack-from-bus"), pack()).unwrap();
    for message in twice() {
        deliver(&world, &bus, &event_bridge(message)).await;
    }
    assert_eq!(packed.swap(0, Ordering::SeqCst), 2);
}

#[tokio::test]
async fn run_says_that_messages_are_not_sent_and_sends_them_when_it_is_called_again() {
    let (world, wire) = (World::instant(), Arc::<Wire>::default());
    let idempotency = world.idempotency().with_sender(Arc::clone(&wire));
    let (operation, payload) = (Operation::new("place-order").key("id"), json!({ "id": "a" }));
    let calls = AtomicUsize::new(0);
    let run = || {
        let place = async |call: Call| {
            calls.fetch_add(1, Ordering::SeqCst);
            call.publish(Message::new("parcels", "{}"))?;
            Ok::<_, Failure>(42)
        };
        world.call(&idempotency, &operation, &payload, place)
    };
    wire.cut(true);
    for _ in 0..2 {
        let unsent = run().await.unwrap_err();
        assert!(matches!(unsent, RunError::Unsent(_)) && unsent.is_transient(), "{unsent}");
    }
    let kept = idempotency.kept_result::<u32, _>(&operation, &payload).await;
    assert_eq!(kept.unwrap(), Some(42), "the work is done");
    wire.cut(false);
    let run = run().await.unwrap();
    assert_eq!((run.result, run.replayed, run.recorded), (42, true, true));
    assert_eq!((calls.load(Ordering::SeqCst), wire.kept.sent().len()), (1, 1));
}

#[tokio::test]
async fn without_a_sender_publishing_fails_the_handler_with_the_remedy() {
    let world = World::new();
    let function = world.with_handler(Sqs::new(), &Operation::new("place-order").key("id"), place);
    let answer = deliver(&world, &function, &batch([order("m-1", "a", "")])).await;
    assert_eq!(answer["batchItemFailures"][0]["itemIdentifier"], "m-1");
    let refused = Call::test("a").publish(Message::new("parcels", "{}")).unwrap_err();
    assert!(refused.to_string().contains("`Idempotency::with_sender`"), "{refused}");
}
