//! Distinct records with one id, which their producer chose, or with one key: each is diverted.

use lambda_idempotency::{
    Operation,
    keys::record,
    source::{ActiveMq, Envelope, RabbitMq, Sqs},
};
use serde_json::{Value, json};

use super::diverting_failures::{Taken, index, is_empty};
use crate::{
    support::{World, batch, with_body},
    support_streams::{active_mq, of_active_mq, of_rabbit_mq, rabbit_mq},
};

/// Messages whose producer chose the id, the same for all. `do` is in the record, too, for handlers of whole
/// records.
fn from_rabbit(data: &[u8]) -> Value {
    rabbit_mq([ordered(of_rabbit_mq("order-1", data))])
}
fn from_active(data: &[u8]) -> Value {
    active_mq([ordered(of_active_mq("order-1", data))])
}

fn ordered(mut message: Value) -> Value {
    message["orderId"] = "a".into();
    message["do"] = "give up".into();
    message
}

/// Both kinds of brokers, with a sink.
fn brokers(taken: &Taken) -> (RabbitMq, ActiveMq) {
    (RabbitMq::new().divert(taken.sink()), ActiveMq::new().divert(taken.sink()))
}

fn of_whole_records(taken: &Taken) -> (RabbitMq, ActiveMq) {
    let (rabbit_mq, active_mq) = brokers(taken);
    let [one, other] = [0; 2].map(|_| record("orderId"));
    (rabbit_mq.whole_record().key(one), active_mq.whole_record().key(other))
}

fn enveloped(taken: &Taken) -> (RabbitMq, ActiveMq) {
    let (rabbit_mq, active_mq) = brokers(taken);
    (rabbit_mq.envelope(Envelope::Sns), active_mq.envelope(Envelope::Sns))
}

/// All these messages are acknowledged, so each has to be diverted, with an id of its own: permanent failures, bad records
/// and bad envelopes.
#[tokio::test]
async fn failures_and_bad_records_with_the_same_producer_id_are_all_diverted() {
    type Brokers = fn(&Taken) -> (RabbitMq, ActiveMq);
    let kinds: [fn(&[u8]) -> Value; 2] = [from_rabbit, from_active];
    let failing = [1, 2].map(|amount| json!({ "id": "a", "do": "give up", "amount": amount }));
    let without_key = [1, 2].map(|amount| json!({ "amount": amount }));
    let [failing, without_key] = [failing, without_key]
        .map(|payloads| payloads.map(|payload| payload.to_string().into_bytes()));
    let cases: [(Brokers, [Vec<u8>; 2]); 5] = [
        (brokers, failing.clone()),
        (of_whole_records, failing.clone()),
        (enveloped, failing),
        (brokers, without_key),
        (brokers, [vec![0xff], vec![0xfe]]),
    ];
    for ((source, payloads), event) in cases.iter().flat_map(|it| kinds.map(|event| (it, event))) {
        let (world, taken) = (World::new(), Taken::default());
        let (rabbit_mq, active_mq) = source(&taken);
        let function = match event(&[])["eventSource"].as_str() {
            Some("aws:rmq") => world.on(rabbit_mq, &index()),
            _ => world.on(active_mq, &index()),
        };
        for payload in payloads.iter().chain(payloads) {
            assert!(is_empty(world.invoke(&function, &event(payload)).await));
        }
        assert_eq!((taken.records().len(), taken.ids()), (4, 2), "{:?}", taken.records());
    }
}

#[tokio::test]
async fn mismatches_with_the_same_producer_id_are_all_diverted() {
    let (world, taken) = (World::new(), Taken::default());
    let (source, _) = brokers(&taken);
    let operation = index().fingerprint("amount");
    let function = world.on(source, &operation);
    for amount in [1, 2, 3, 2, 3] {
        let order = json!({ "id": "a", "do": "", "amount": amount });
        assert!(is_empty(
            world.invoke(&function, &from_rabbit(order.to_string().as_bytes())).await
        ));
    }
    world.ledger.assert_each_once(["a"]);
    assert_eq!((taken.records().len(), taken.ids()), (4, 2));
}

/// A service that forwards notifications may use one id twice, and send a message that is not a string.
#[tokio::test]
async fn bad_notifications_with_the_same_id_are_all_diverted() {
    let (world, taken) = (World::new(), Taken::default());
    let source = Sqs::new().envelope(Envelope::Sns).divert(taken.sink());
    let function = world.on(source, &index());
    let forwarded = |amount: u32| {
        let message = json!({ "id": "a", "amount": amount });
        json!({ "TopicArn": "t", "MessageId": "n-1", "Message": message }).to_string()
    };
    for (message, amount) in [("m-1", 1), ("m-2", 2), ("m-1", 1)] {
        let event = batch([with_body(message, &forwarded(amount))]);
        assert!(world.returned(&function, &event).await.is_empty());
    }
    assert_eq!((taken.records().len(), taken.ids()), (3, 2), "{:?}", taken.records());
}

#[tokio::test]
async fn different_orders_with_the_same_fingerprint_in_one_batch_are_all_diverted() {
    let (world, taken) = (World::new(), Taken::default());
    let (source, operation) = (Sqs::new().divert(taken.sink()), index().fingerprint("amount"));
    let function = world.on(source, &operation);
    let order = |message, item| {
        let order = json!({ "id": "a", "amount": 1, "do": "give up", "item": item });
        with_body(message, &order.to_string())
    };
    let event = batch([order("m-1", "book"), order("m-2", "pen"), order("m-3", "book")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(taken.records().len(), 2, "the third is a copy of the first");
}

/// Key and fingerprint are outside of the payload, which is the same.
#[tokio::test]
async fn records_that_differ_only_outside_of_their_payload_are_all_diverted() {
    let (world, taken) = (World::new(), Taken::default());
    let attribute = |name: &str| record(format!("messageAttributes.{name}.stringValue"));
    let source = Sqs::new().divert(taken.sink());
    let operation = Operation::new("index");
    let source = source.key(attribute("orderId")).fingerprint(attribute("amount"));
    let function = world.on(source, &operation);
    let order = |message, amount: &str| {
        let mut order = with_body(message, r#"{"do":"give up"}"#);
        order["messageAttributes"] = json!({
            "orderId": { "dataType": "String", "stringValue": "7" },
            "amount": { "dataType": "String", "stringValue": amount },
        });
        order
    };
    let event = batch([order("m-1", "5"), order("m-2", "9"), order("m-3", "5")]);
    for _ in 0..2 {
        assert!(world.returned(&function, &event).await.is_empty());
    }
    assert_eq!((taken.records().len(), taken.ids()), (4, 2), "the third is a copy of the first");
}

/// Without an id of the producer, or with one that it uses twice, only their headers tell these messages apart. The broker
/// counts deliveries in the headers, too.
#[tokio::test]
async fn bad_records_that_differ_in_their_headers_are_all_diverted() {
    for id in [Value::Null, "order-1".into()] {
        let (world, taken) = (World::new(), Taken::default());
        let function = world.on(RabbitMq::new().divert(taken.sink()), &index());
        let bad = |region: &str, count: u32| {
            let mut bad = of_rabbit_mq(id.clone(), "not JSON");
            bad["redelivered"] = (count > 0).into();
            bad["basicProperties"]["headers"] =
                json!({ "region": region, "x-delivery-count": count });
            bad
        };
        for count in [0, 1] {
            let event = rabbit_mq([bad("eu", count), bad("us", count)]);
            assert!(is_empty(world.invoke(&function, &event).await));
        }
        assert_eq!((taken.records().len(), taken.ids()), (4, 2), "{id}");
    }
}
