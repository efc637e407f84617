//! A handler of text gets the text of its record exactly, whether it happens to be JSON or not.

use std::{borrow::Cow, fmt::Debug};

use lambda_idempotency::{
    Function, Operation,
    handler::Payload,
    source::{
        ActiveMq, Envelope, EventBridge, Invoke, Kafka, Kinesis, Pipe, RabbitMq, Sns, Source, Sqs,
    },
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    support::{Noted, TOPIC, World, batch, bus_event, notification, with_body},
    support_streams::{
        active_mq, base64, message, of_active_mq, of_rabbit_mq, rabbit_mq, topic, with_data,
    },
};

const TEXTS: [&str; 13] = [
    "17",
    "true",
    "null",
    "1e5",
    " 17",
    "A17",
    "007",
    "",
    "\"in quotes\"",
    "\"a\",\"b\"",
    "{\"id\": 1}",
    "[1,2]",
    "1e999",
];

#[derive(Debug, Deserialize, PartialEq)]
struct Line(String);

#[derive(Debug, Deserialize, PartialEq)]
#[serde(transparent)]
struct Named {
    text: Cow<'static, str>,
}

/// A type whose text is checked.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(try_from = "String")]
struct Short(String);

impl TryFrom<String> for Short {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.len() < 20 { Ok(Self(text)) } else { Err("too long") }
    }
}

async fn exactly<T>(of: impl Fn(&'static str) -> T)
where
    T: DeserializeOwned + Debug + PartialEq + Send + 'static,
{
    let (world, got) = (World::new(), Noted::<T>::new());
    let function = world.with_handler(Sqs::new(), &Operation::new("a"), got.payloads());
    for (at, text) in TEXTS.into_iter().enumerate() {
        let message = with_body(&format!("m-{at}"), text);
        let returned = world.returned(&function, &batch([message])).await;
        assert!(returned.is_empty(), "{text:?} as {}", std::any::type_name::<T>());
        assert_eq!(got.take(), [of(text)]);
    }
}

#[tokio::test]
async fn a_handler_of_text_gets_every_body_exactly() {
    exactly(str::to_owned).await;
    exactly(|text| Line(text.to_owned())).await;
    exactly(|text| Named { text: text.to_owned().into() }).await;
    exactly(Cow::<'static, str>::Borrowed).await;
    exactly(Box::<str>::from).await;
    exactly(|text| Short(text.to_owned())).await;
    exactly(|text| Some(text.to_owned())).await;
}

/// The function and the event with this text of each source whose payload is a text of its producer.
fn of_texts<T: Payload>(world: &World, got: &Noted<T>, text: &str) -> Vec<(Function, Value)> {
    fn on<T: Payload>(
        (world, got): (&World, &Noted<T>),
        name: &str,
        source: impl Source,
        event: Value,
    ) -> (Function, Value) {
        (world.with_handler(source, &Operation::new(name), got.payloads()), event)
    }
    let with = (world, got);
    let announced = json!({ "MessageId": "n-1", "TopicArn": TOPIC, "Message": text }).to_string();
    let enveloped = Sqs::new().envelope(Envelope::Sns);
    let queued = || with_body("m-1", text);
    let mut value = message(0, 1, "a", "");
    value["value"] = base64(text).into();
    vec![
        on(with, "a", Sns::new(), notification("n-1", text)),
        on(with, "b", enveloped, batch([with_body("m-1", &announced)])),
        on(with, "c", Sqs::new(), batch([queued()])),
        on(with, "a", Pipe::of(Sqs::new()), json!([queued()])),
        on(with, "a", Kinesis::new(), batch([with_data(1, "k", text)])),
        on(with, "a", Kafka::new(), topic([value])),
        on(with, "a", ActiveMq::new(), active_mq([of_active_mq("1", text)])),
        on(with, "a", RabbitMq::new(), rabbit_mq([of_rabbit_mq("1", text)])),
    ]
}

#[tokio::test]
async fn so_does_a_handler_of_each_source_whose_payload_is_text() {
    for text in TEXTS {
        let (world, got) = (World::new(), Noted::<String>::new());
        for (function, event) in of_texts(&world, &got, text) {
            let answer = world.invoke(&function, &event).await.unwrap();
            assert_eq!(got.take(), [text], "{event} {answer}");
        }
    }
}

/// A detail, or the event of a direct invocation, is a part of the event's JSON, and no text of a producer.
#[tokio::test]
async fn a_payload_that_is_a_part_of_the_events_json_is_read_as_json() {
    let (world, got) = (World::new(), Noted::<String>::new());
    let invoke = world.with_handler(Invoke::by_request_id(), &Operation::new("a"), got.payloads());
    world.invoke(&invoke, &json!("in quotes")).await.unwrap();
    assert_eq!(got.take(), ["in quotes"]);
    assert!(world.invoke(&invoke, &json!(17)).await.is_err());
    let bus = world.with_handler(EventBridge::new(), &Operation::new("b"), got.payloads());
    world.invoke(&bus, &bus_event("e-1", "Placed", &json!("in quotes"))).await.unwrap();
    assert_eq!(got.take(), ["in quotes"]);
    let object = bus_event("e-2", "Placed", &json!({ "id": 1 }));
    assert!(world.invoke(&bus, &object).await.is_err());
    let enveloped = Sqs::new().envelope(Envelope::EventBridge);
    let queue = world.with_handler(enveloped, &Operation::new("c"), got.payloads());
    let body = bus_event("e-3", "Placed", &json!("in quotes")).to_string();
    world.invoke(&queue, &batch([with_body("m-1", &body)])).await.unwrap();
    assert_eq!(got.take(), ["in quotes"]);
    let whole = Sqs::new().whole_record();
    let queue = world.with_handler(whole, &Operation::new("d"), got.payloads());
    let event = batch([with_body("m-1", "17")]);
    assert_eq!(world.returned(&queue, &event).await, ["m-1"], "a record is not a text");
    assert!(got.take().is_empty());
}

/// A deleted key and the text `null` are not the same.
#[tokio::test]
async fn a_tombstone_of_kafka_is_no_text() {
    let tombstone = |offset: u64| {
        let mut record = message(0, offset, "a", "");
        record["value"] = Value::Null;
        record
    };
    let (world, got) = (World::new(), Noted::<String>::new());
    let texts = world.with_handler(Kafka::new(), &Operation::new("a"), got.payloads());
    let answer = world.invoke(&texts, &topic([tombstone(1)])).await.unwrap();
    assert_eq!(answer["batchItemFailures"].as_array().unwrap().len(), 1, "{answer}");
    let (world, got) = (World::new(), Noted::<Option<String>>::new());
    let texts = world.with_handler(Kafka::new(), &Operation::new("a"), got.payloads());
    let mut text = message(0, 2, "a", "");
    text["value"] = base64("null").into();
    world.invoke(&texts, &topic([tombstone(1), text])).await.unwrap();
    assert_eq!(got.take(), [None, Some("null".to_owned())]);
}

/// A newtype's `Deserialize` may expect only what is in the JSON, such as a text in quotes.
#[derive(Debug, PartialEq)]
struct Quoted(u32);

impl<'de> Deserialize<'de> for Quoted {
    #[expect(clippy::expect_used, reason = "a type that panics")]
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?.parse().expect("a number")))
    }
}

#[tokio::test]
async fn a_type_that_panics_for_the_exact_text_is_read_from_the_json() {
    let (world, got) = (World::new(), Noted::<Quoted>::new());
    let function = world.with_handler(Sqs::new(), &Operation::new("a"), got.payloads());
    let event = batch([with_body("m-1", "\"17\""), with_body("m-2", "18"), with_body("m-3", "x")]);
    assert_eq!(world.returned(&function, &event).await, ["m-3"]);
    let got = got.take();
    assert!(got.len() == 2 && got.contains(&Quoted(17)) && got.contains(&Quoted(18)), "{got:?}");
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum OrderOrText {
    Order { id: u32 },
    Text(String),
}

#[tokio::test]
async fn a_type_that_also_takes_text_gets_text_that_happens_to_be_a_number_or_a_word_of_json() {
    let (world, got) = (World::new(), Noted::<OrderOrText>::new());
    let function = world.with_handler(Sqs::new(), &Operation::new("a"), got.payloads());
    let texts = ["17", "true", "null", " 17", "1e5", "A17", "007"];
    for (at, text) in texts.into_iter().enumerate() {
        let event = batch([with_body(&format!("m-{at}"), text)]);
        assert!(world.returned(&function, &event).await.is_empty(), "{text}");
        assert_eq!(got.take(), [OrderOrText::Text(text.to_owned())]);
    }
    let event = batch([with_body("m-a", "{\"id\": 1}"), with_body("m-b", " {\"name\": 1}")]);
    assert_eq!(world.returned(&function, &event).await, ["m-b"], "an object is not a text");
    assert_eq!(got.take(), [OrderOrText::Order { id: 1 }]);
    let event = batch([with_body("m-c", "\"in quotes\"")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(got.take(), [OrderOrText::Text("in quotes".to_owned())]);
}

/// Types that are written as text in JSON take that too, and all others are read from JSON.
#[tokio::test]
async fn a_handler_of_another_type_gets_what_the_json_says() {
    let world = World::new();
    let address = Noted::<std::net::IpAddr>::new();
    let function = world.with_handler(Sqs::new(), &Operation::new("a"), address.payloads());
    let event = batch([with_body("m-1", "\"127.0.0.1\""), with_body("m-2", "127.0.0.1")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(address.take().len(), 2);
    let order = Noted::<Option<Vec<u32>>>::new();
    let function = world.with_handler(Sqs::new(), &Operation::new("b"), order.payloads());
    let event = batch([with_body("m-1", "null"), with_body("m-2", "[17]")]);
    assert!(world.returned(&function, &event).await.is_empty());
    let got = order.take();
    assert!(got.contains(&None) && got.contains(&Some(vec![17])), "{got:?}");
    let any = Noted::<Value>::new();
    let function = world.with_handler(Sqs::new(), &Operation::new("c"), any.payloads());
    let event = batch([with_body("m-1", "17"), with_body("m-2", "A17")]);
    assert!(world.returned(&function, &event).await.is_empty());
    let got = any.take();
    assert!(got.contains(&json!(17)) && got.contains(&json!("A17")), "{got:?}");
}

/// JSON that a lenient reader takes and `serde_json` refuses, and texts that are meant as JSON and are none.
const BROKEN: [&str; 12] = [
    r#"{"id":"a","note":"\ud800"}"#,
    r#"{"id":"a","sum":1e999}"#,
    r#"{"id":"a","sum":NaN}"#,
    r#"{"id":"a","sum":1"#,
    r#"{"id":"a"}{"id":"b"}"#,
    "\u{feff}{\"id\":\"a\"}",
    " \r\n{\"id\":\"a\",}",
    "[1,2",
    "\"a\",\"b\"",
    r#""\ud800""#,
    "1e999",
    "-1e999",
];

#[tokio::test]
async fn broken_json_is_a_bad_record_of_each_source_and_reaches_no_handler() {
    let deep = format!("{{\"id\":\"a\",\"deep\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for text in BROKEN.into_iter().chain([deep.as_str()]) {
        let (world, got) = (World::new(), Noted::<Value>::new());
        for (function, event) in of_texts(&world, &got, text) {
            let answer = world.invoke(&function, &event).await;
            let failed = answer
                .as_ref()
                .map_or(1, |answer| answer["batchItemFailures"].as_array().map_or(0, Vec::len));
            assert_eq!((got.take(), failed), (Vec::<Value>::new(), 1), "{event} {answer:?}");
        }
    }
}

/// The key reader skips what it does not need, and `serde_json` reads everything.
#[tokio::test]
async fn what_the_key_reader_accepts_and_serde_refuses_reaches_no_handler() {
    for (key, text) in
        [("id", r#"{"id":"a","note":"\ud800"}"#), ("id", r#"{"id":"a","sum":1e999}"#), ("@", "17")]
    {
        let world = World::new();
        let (any, either) = (Noted::<Value>::new(), Noted::<OrderOrText>::new());
        let operation = Operation::new("a").key(key);
        let function = world.with_handler(Sqs::new(), &operation, either.payloads());
        let event = batch([with_body("m-1", text)]);
        assert_eq!(world.returned(&function, &event).await, ["m-1"], "{text}");
        assert_eq!(either.take(), []);
        if key == "id" {
            let function = world.with_handler(Sqs::new(), &operation, any.payloads());
            assert_eq!(world.returned(&function, &event).await, ["m-1"], "{text}");
            assert_eq!(any.take(), Vec::<Value>::new());
        }
    }
}
