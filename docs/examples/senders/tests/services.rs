//! Sends to MiniStack, an implementation of the three services by other authors, and receives what was sent.

#[path = "support/ministack.rs"]
mod ministack;

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_config::SdkConfig;
use aws_sdk_sqs::{
    Client,
    types::{Message as Received, MessageSystemAttributeName, QueueAttributeName},
};
use lambda_idempotency::{
    Call, Failure, Idempotency, MemoryStore, Operation, RunContext, RunError,
    clock::{Clock as _, SystemClock, Timestamp},
    outbox::{Message, OutgoingMessage, Sender as _, messages},
    store::{IdempotencyRecord, Key, Status},
};
use ministack::MiniStack;
use senders::Senders;
use serde_json::{Value, json};

struct Services {
    _ministack: MiniStack,
    config: SdkConfig,
    sqs: Client,
}

impl Services {
    async fn new() -> Self {
        let ministack = ministack::start();
        let config = ministack::config(&ministack).await;
        let sqs = Client::new(&config);
        Self { _ministack: ministack, config, sqs }
    }

    /// A new queue; its URL.
    async fn queue(&self, name: &str, is_fifo: bool) -> String {
        let nanos = SystemClock.now().as_millis();
        let end = if is_fifo { ".fifo" } else { "" };
        let mut create = self.sqs.create_queue().queue_name(format!("{name}-{nanos}{end}"));
        if is_fifo {
            create = create.attributes(QueueAttributeName::FifoQueue, "true");
        }
        create.send().await.expect("a queue").queue_url.expect("its URL")
    }

    async fn arn(&self, queue: &str) -> String {
        let name = QueueAttributeName::QueueArn;
        let asked = self.sqs.get_queue_attributes().queue_url(queue).attribute_names(name.clone());
        let answer = asked.send().await.expect("attributes");
        answer.attributes.expect("attributes")[&name].clone()
    }

    /// All messages of a queue, which are deleted.
    async fn drain(&self, queue: &str) -> Vec<Received> {
        let mut all = Vec::new();
        for _ in 0..20 {
            let received = self
                .sqs
                .receive_message()
                .queue_url(queue)
                .max_number_of_messages(10)
                .message_attribute_names("All")
                .message_system_attribute_names(MessageSystemAttributeName::All)
                .send()
                .await
                .expect("messages");
            for message in received.messages.unwrap_or_default() {
                let handle = message.receipt_handle.clone().expect("a handle");
                let delete = self.sqs.delete_message().queue_url(queue).receipt_handle(handle);
                delete.send().await.expect("a deletion");
                all.push(message);
            }
        }
        all
    }
}

fn soon() -> Timestamp {
    SystemClock.now().plus(std::time::Duration::from_secs(10))
}

/// These messages as a handler for `key` publishes them.
fn outgoing(key: &str, published: Value) -> Vec<OutgoingMessage> {
    let mut record = IdempotencyRecord::new(Status::Completed, soon());
    record.outbox = Some(published.to_string().into());
    messages(&Key::from_text(key), &record).expect("an outbox")
}

fn attribute(message: &Received, name: &str) -> Option<String> {
    message.message_attributes.as_ref()?.get(name)?.string_value.clone()
}

fn bodies(received: &[Received]) -> Vec<&str> {
    received.iter().filter_map(|message| message.body.as_deref()).collect()
}

#[tokio::test]
async fn a_standard_queue_gets_bodies_attributes_and_ids() {
    let services = Services::new().await;
    let queue = services.queue("standard", false).await;
    let published: Vec<Value> = (0..23)
        .map(|number| json!({"to": queue, "body": number.to_string(), "attributes": {"tenant": "acme"}}))
        .collect();
    let sent = outgoing("place#1", published.into());
    let answers = Senders::new(&services.config).send(&sent, soon()).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 23, "{answers:?}");
    let received = services.drain(&queue).await;
    let mut ids: Vec<_> = received
        .iter()
        .map(|message| attribute(message, "idempotency-key").expect("an id"))
        .collect();
    let mut expected: Vec<_> = sent.iter().map(|message| message.id().to_owned()).collect();
    ids.sort();
    expected.sort();
    assert_eq!(ids, expected);
    assert!(received.iter().all(|message| attribute(message, "tenant").as_deref() == Some("acme")));
}

#[tokio::test]
async fn a_fifo_queue_takes_a_message_once_however_often_it_is_sent() {
    let services = Services::new().await;
    let queue = services.queue("ordered", true).await;
    let sent = outgoing("place#1", json!([{"to": queue, "body": "1", "group": "g"}]));
    let sender = Senders::new(&services.config);
    for _ in 0..3 {
        assert!(sender.send(&sent, soon()).await.iter().all(Result::is_ok));
    }
    let received = services.drain(&queue).await;
    assert_eq!(bodies(&received), ["1"]);
    let system = received[0].attributes.as_ref().expect("attributes");
    let id = &system[&MessageSystemAttributeName::MessageDeduplicationId];
    assert_eq!(id, sent[0].id());
}

#[tokio::test]
async fn a_topic_gets_messages_with_their_ids() {
    let services = Services::new().await;
    let queue = services.queue("subscribed", false).await;
    let sns = aws_sdk_sns::Client::new(&services.config);
    let topic = sns.create_topic().name("orders").send().await.expect("a topic");
    let topic = topic.topic_arn.expect("its ARN");
    let subscribe = sns.subscribe().topic_arn(&topic).protocol("sqs");
    subscribe.endpoint(services.arn(&queue).await).send().await.expect("a subscription");
    let sent = outgoing("place#1", json!([{"to": topic, "body": "hello"}]));
    let answers = Senders::new(&services.config).send(&sent, soon()).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let received = services.drain(&queue).await;
    let notification: Value = serde_json::from_str(bodies(&received)[0]).expect("a notification");
    assert_eq!(notification["Message"], "hello");
    assert_eq!(notification["MessageAttributes"]["idempotency-key"]["Value"], sent[0].id());
}

#[tokio::test]
async fn an_event_bus_gets_events_with_their_ids() {
    let services = Services::new().await;
    let queue = services.queue("target", false).await;
    let events = aws_sdk_eventbridge::Client::new(&services.config);
    events.create_event_bus().name("orders").send().await.expect("a bus");
    let rule = events.put_rule().name("all").event_bus_name("orders");
    rule.event_pattern(r#"{"source":["shop"]}"#).send().await.expect("a rule");
    let target = aws_sdk_eventbridge::types::Target::builder().id("queue");
    let target = target.arn(services.arn(&queue).await).build().expect("a target");
    let targets = events.put_targets().rule("all").event_bus_name("orders").targets(target);
    targets.send().await.expect("a target");
    let attributes = json!({"source": "shop", "detail-type": "OrderPlaced"});
    let sent = outgoing(
        "place#1",
        json!([
            {"to": "orders", "body": "{\"order\":\"o-1\"}", "attributes": attributes},
            {"to": "orders", "body": "{\"order\":\"o-1\"}"},
        ]),
    );
    let answers = Senders::new(&services.config).send(&sent, soon()).await;
    assert!(answers[0].is_ok() && answers[1].is_err(), "{answers:?}");
    let received = services.drain(&queue).await;
    let event: Value = serde_json::from_str(bodies(&received)[0]).expect("an event");
    assert_eq!(event["detail"]["order"], "o-1");
    assert_eq!(event["resources"][0], sent[0].id());
}

/// A message to a queue that does not exist is an error of its own; the others are sent.
#[tokio::test]
async fn one_queue_that_is_gone_does_not_keep_messages_from_another() {
    let services = Services::new().await;
    let queue = services.queue("there", false).await;
    let gone = format!("{queue}-gone");
    let sent = outgoing("place#1", json!([{"to": gone, "body": "1"}, {"to": queue, "body": "2"}]));
    let answers = Senders::new(&services.config).send(&sent, soon()).await;
    assert!(answers[0].is_err() && answers[1].is_ok(), "{answers:?}");
    assert_eq!(bodies(&services.drain(&queue).await), ["2"]);
}

/// The queue is created only after the first call.
#[tokio::test]
async fn work_whose_message_could_not_be_sent_sends_it_with_the_next_call() {
    let services = Services::new().await;
    let there = services.queue("later", false).await;
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_nanos();
    let name = format!("created-{nanos}");
    let later = there.rsplit_once('/').expect("a path").0.to_owned() + "/" + &name;
    let store = Arc::new(MemoryStore::new());
    let idempotency = Idempotency::new(store).with_sender(Senders::new(&services.config));
    let operation = Operation::new("place").key("order");
    let order = json!({"order": "o-1"});
    let place = |call: Call| {
        let message = Message::new(later.clone(), "placed");
        async move {
            call.publish(message)?;
            Ok::<_, Failure>("done".to_owned())
        }
    };
    let context = RunContext::from(soon());
    let first = idempotency.run(&operation, &order, context, place).await;
    assert!(matches!(first, Err(RunError::Unsent(_))), "{first:?}");
    services.sqs.create_queue().queue_name(name).send().await.expect("a queue");
    let never = |_: Call| async { Err::<String, _>(Failure::permanent("called again")) };
    let second = idempotency.run(&operation, &order, context, never).await.expect("a result");
    assert_eq!((&*second.result, second.replayed), ("done", true));
    assert_eq!(bodies(&services.drain(&later).await), ["placed"]);
}
