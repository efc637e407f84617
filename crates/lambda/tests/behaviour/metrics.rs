//! The metrics that are written for CloudWatch, each line checked against the specification of its format.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency::{
    Function, Operation,
    observe::CloudWatchMetrics,
    source::{Sns, Sqs},
    store::StoreErrorKind,
};
use lambda_idempotency_core::clock::Clock as _;
use lambda_idempotency_testkit::faults::{Fault, GuardKind};
use serde_json::{Value, json};

use crate::{
    diverting_failures::{Taken, index},
    support::{World, batch, notification, order},
};

#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(crate) fn metrics(&self) -> CloudWatchMetrics {
        let lines = Arc::clone(&self.0);
        CloudWatchMetrics::new("Shop")
            .unwrap()
            .with_output(move |line| lines.lock().unwrap().push(line.to_owned()))
    }

    /// The documents that were written, each of which keeps the format.
    pub(crate) fn take(&self) -> Vec<Value> {
        let lines = std::mem::take(&mut *self.0.lock().unwrap());
        lines.iter().map(|line| checked(line)).collect()
    }
}

/// Checks a line against the specification:
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>
fn checked(line: &str) -> Value {
    assert!(!line.contains('\n') && line.len() <= 256 * 1024, "{line}");
    let document: Value = serde_json::from_str(line).unwrap();
    let only = |object: &Value, names: &[&str]| {
        let found: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(found, names, "{line}");
    };
    let is_text = |value: &Value, longest| {
        let text = value.as_str().unwrap();
        (1..=longest).contains(&text.len()) && text.is_ascii()
    };
    let about = &document["_aws"];
    only(about, &["CloudWatchMetrics", "Timestamp"]);
    assert!(about["Timestamp"].is_u64(), "{line}");
    for directive in about["CloudWatchMetrics"].as_array().unwrap() {
        only(directive, &["Dimensions", "Metrics", "Namespace"]);
        assert!(is_text(&directive["Namespace"], 1024), "{line}");
        let dimensions = directive["Dimensions"].as_array().unwrap();
        assert!(!dimensions.is_empty(), "{line}");
        for set in dimensions {
            let set = set.as_array().unwrap();
            assert!(set.len() <= 30, "{line}");
            for name in set {
                assert!(is_text(name, 250), "{line}");
                let target = &document[name.as_str().unwrap()];
                assert!(is_text(target, 1024), "{line}");
            }
        }
        let metrics = directive["Metrics"].as_array().unwrap();
        assert!((1..=100).contains(&metrics.len()), "{line}");
        let mut names = BTreeSet::new();
        for metric in metrics {
            only(metric, &["Name", "Unit"]);
            assert!(is_text(&metric["Name"], 1024), "{line}");
            assert!(["Count", "Milliseconds"].contains(&metric["Unit"].as_str().unwrap()));
            let name = metric["Name"].as_str().unwrap();
            assert!(names.insert(name), "{name} is there twice");
            match &document[name] {
                Value::Number(_) => {}
                Value::Array(values) => {
                    assert!(
                        (1..=100).contains(&values.len()) && values.iter().all(Value::is_number)
                    );
                }
                other => panic!("{name} is {other}"),
            }
        }
        let targets = document.as_object().unwrap().len();
        assert_eq!(targets, 1 + names.len() + 2, "members that are not announced: {line}");
    }
    document
}

/// The members of a document that are not times, without what each has.
fn counts(document: &Value) -> Value {
    let mut document = document.as_object().unwrap().clone();
    document.retain(|name, value| name != "_aws" && !value.is_array());
    document.into()
}

/// A function whose metrics are in the lines.
fn measured(world: &World) -> (Lines, Function) {
    let lines = Lines::default();
    let idempotency = world.idempotency().with_observer(lines.metrics());
    let place = Operation::new("place").key("id");
    (lines, idempotency.on(Sqs::new(), &place, world.handler()).unwrap())
}

#[tokio::test]
async fn each_invocation_has_a_line_for_each_operation_and_source() {
    let (world, lines) = (World::instant(), Lines::default());
    let idempotency = world.idempotency().with_observer(lines.metrics());
    let function = idempotency
        .function()
        .on(Sqs::new(), &Operation::new("place").key("id"), world.handler())
        .on(Sns::new(), &Operation::new("ship").key("id"), world.handler())
        .build()
        .unwrap();
    let orders = batch([
        order("m-1", "a", ""),
        order("m-2", "a", ""),
        order("m-3", "c", "give up"),
        order("m-4", "c", "give up"),
    ]);
    for _ in 0..2 {
        world.invoke(&function, &orders).await.unwrap();
    }
    world.invoke(&function, &notification("n-1", r#"{"id":"a"}"#)).await.unwrap();
    let documents = lines.take();
    let found: Vec<Value> = documents.iter().map(counts).collect();
    assert_eq!(
        found,
        [
            json!({
                "operation": "place", "source": "sqs", "records": 4.0, "executed": 1.0,
                "coalesced": 1.0, "failed": 2.0, "permanent_failures": 1.0, "store_calls": 2.0,
            }),
            json!({
                "operation": "place", "source": "sqs", "records": 4.0, "replayed": 2.0,
                "permanently_failed": 2.0, "cache_hits": 1.0, "store_calls": 1.0,
            }),
            json!({
                "operation": "ship", "source": "sns", "records": 1.0, "executed": 1.0,
                "store_calls": 2.0,
            }),
        ]
    );
    let first = &documents[0];
    assert_eq!(first["_aws"]["Timestamp"], world.clock.now().as_millis());
    assert_eq!(first["_aws"]["CloudWatchMetrics"][0]["Namespace"], "Shop");
    for (time, values) in
        [("handler_time", 2), ("wait_time", 2), ("claim_call_time", 1), ("batch_time", 1)]
    {
        assert_eq!(first[time].as_array().unwrap().len(), values, "{time}");
    }
}

#[tokio::test]
async fn work_that_is_not_recorded_lost_attempts_and_throttles_are_counted() {
    let world = World::new();
    let (lines, function) = measured(&world);
    let refuse = Fault::refuse(StoreErrorKind::Throttled).guarded_by(GuardKind::OwnedBy).always();
    world.store.inject(refuse);
    let orders = batch([order("m-1", "a", "")]);
    world.invoke(&function, &orders).await.unwrap();
    let document = &lines.take()[0];
    assert_eq!(document["completion_lost"], 1.0);
    assert!(document["store_errors"].as_f64() > Some(0.0), "{document}");
    assert_eq!(document["store_errors"], document["store_throttled"]);
    world.store.heal();
    world.clock.advance(Duration::from_secs(60));
    world.invoke(&function, &orders).await.unwrap();
    let document = &lines.take()[0];
    assert_eq!((&document["executed"], &document["lost_attempts"]), (&json!(1.0), &json!(1.0)));
}

#[tokio::test]
async fn a_permanent_failure_is_counted_once_whether_its_record_is_diverted_or_not() {
    let (world, lines, taken) = (World::new(), Lines::default(), Taken::default());
    let idempotency = world.idempotency().with_observer(lines.metrics());
    let (source, operation) = (Sqs::new().divert(taken.sink()), index().max_failed_attempts(1));
    let function = idempotency.on(source, &operation, world.handler()).unwrap();
    taken.refuse(1);
    let copies = [order("m-1", "a", "give up"), order("m-2", "a", "give up")];
    for (outcome, counted) in [("failed", json!(1.0)), ("permanently_failed", Value::Null)] {
        world.invoke(&function, &batch(copies.clone())).await.unwrap();
        let document = &lines.take()[0];
        assert!(document[outcome].is_number(), "{document}");
        assert_eq!(document["permanent_failures"], counted, "{document}");
    }
    assert_eq!(taken.records().len(), 1);
}

#[tokio::test]
async fn more_than_100_values_are_in_several_documents() {
    let world = World::new();
    let (lines, function) = measured(&world);
    let orders = (0..250).map(|n| order(&format!("m-{n}"), &format!("o-{n}"), ""));
    world.invoke(&function, &batch(orders)).await.unwrap();
    let documents = lines.take();
    let values: Vec<usize> = documents
        .iter()
        .map(|document| document["handler_time"].as_array().unwrap().len())
        .collect();
    assert_eq!(values, [100, 100, 50]);
    let counted: Vec<&Value> =
        documents.iter().filter_map(|document| document.get("executed")).collect();
    assert_eq!(counted, [&json!(250.0)], "counts are in one of them");
}

#[tokio::test]
async fn names_of_operations_that_are_made_from_data_do_not_multiply_the_metrics() {
    let (world, lines) = (World::new(), Lines::default());
    let idempotency = world.idempotency().with_observer(lines.metrics());
    let payload = json!({ "id": "a" });
    for n in 0..103 {
        let operation = Operation::new(format!("operation-{n}")).key("id");
        world.run(&idempotency, &operation, &payload, 1).await.unwrap();
    }
    let documents = lines.take();
    let names: BTreeSet<&str> =
        documents.iter().map(|document| document["operation"].as_str().unwrap()).collect();
    assert_eq!((documents.len(), names.len()), (103, 101));
    assert!(names.contains("others") && !names.contains("operation-100"));
    assert_eq!(documents[0]["source"], "run");
}

#[test]
fn a_namespace_that_cloudwatch_refuses_is_refused() {
    for name in ["Shop/Prod", "Shop of Ann"] {
        assert!(CloudWatchMetrics::new(name).is_ok(), "{name}");
    }
    for name in ["", " ", "AWS/SQS", ":Shop", "Sh\u{f6}p", "line\n", &"x".repeat(256)] {
        let text = CloudWatchMetrics::new(name).unwrap_err().to_string();
        assert!(text.contains("CloudWatch allows") && !text.contains('\n'), "{text}");
    }
}
