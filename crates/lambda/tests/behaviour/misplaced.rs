//! A setting that has no effect for a source is refused, and not ignored.

use std::{collections::BTreeSet, time::Duration};

use lambda_idempotency::{
    Call, ConfigError, Failure, Lease, Mode, OnConflict, OnMissingKey, OnOutage, OnTimeout,
    Operation, RunContext, RunError,
    keys::{Functions, KeyFormat},
    powertools::PowertoolsKeys,
    source::{
        ActiveMq, AfterFailure, DocumentDb, DynamoDbStream, Envelope, EventBridge, Invoke, Kafka,
        KeepOrder, Kinesis, Pipe, RabbitMq, S3, Scheduler, Sns, Sqs,
    },
};
use serde_json::{Value, json};

use crate::support::World;

const SOURCES: [&str; 13] = [
    "sqs",
    "sns",
    "s3",
    "kinesis",
    "dynamodb",
    "documentdb",
    "kafka",
    "activemq",
    "rabbitmq",
    "eventbridge",
    "pipe",
    "scheduler",
    "invoke",
];
const STREAMS: &[&str] = &["kinesis", "dynamodb", "documentdb", "kafka", "pipe"];
/// These use operations, but are not sources.
const OTHERS: [&str; 3] = ["`.event(..)`", "`.run(..)`", "`.run_many(..)`"];

type Set = fn(Operation) -> Operation;

/// Each setting, with a value that changes something, and the places that take it.
fn settings() -> Vec<(&'static str, Set, Vec<&'static str>)> {
    let everywhere = || SOURCES.iter().chain(&OTHERS).copied().collect::<Vec<_>>();
    let sources = || SOURCES.to_vec();
    vec![
        ("queue", |o| o.queue("orders"), vec!["sqs", "pipe"]),
        ("topic", |o| o.topic("orders"), vec!["sns", "kafka"]),
        ("stream", |o| o.stream("orders"), vec!["kinesis", "pipe"]),
        ("source_table", |o| o.source_table("orders"), vec!["dynamodb", "pipe"]),
        ("bucket", |o| o.bucket("orders"), vec!["s3"]),
        ("broker", |o| o.broker("orders"), vec!["activemq", "rabbitmq", "kafka", "pipe"]),
        ("cluster", |o| o.cluster("orders"), vec!["documentdb"]),
        ("schedule", |o| o.schedule("orders"), vec!["scheduler"]),
        ("event_source", |o| o.event_source("orders"), vec!["eventbridge"]),
        ("detail_type", |o| o.detail_type("Placed"), vec!["eventbridge"]),
        ("order", |o| o.order(KeepOrder::Shard), STREAMS.to_vec()),
        ("after_failure", |o| o.after_failure(AfterFailure::Batch), sources()),
        (
            "return_whole_batch",
            Operation::return_whole_batch,
            vec!["sqs", "kinesis", "dynamodb", "kafka", "pipe"],
        ),
        (
            "concurrency",
            |o| o.concurrency(1),
            sources().into_iter().chain(["`.run_many(..)`"]).collect(),
        ),
        ("envelope", |o| o.envelope(Envelope::Sns), sources()),
        ("whole_record", Operation::whole_record, sources()),
        (
            "on_bad_record",
            |o| o.on_bad_record(OnBadRecord::divert(async |_| Ok::<_, Failure>(()))),
            sources(),
        ),
        ("divert", |o| o.divert(async |_| Ok::<_, Failure>(())), sources()),
        ("recoverable", Operation::recoverable, sources()),
        ("recoverable_up_to", |o| o.recoverable_up_to(9), sources()),
        ("mutex", |o| o.key("id").mode(Mode::Mutex), everywhere()),
        ("on_busy", |o| o.on_busy(async |_| ()), sources()),
        (
            "on_permanent_failure",
            |o| o.on_permanent_failure(OnPermanentFailure::Acknowledge),
            sources(),
        ),
        ("on_missing_key", |o| o.key("id").on_missing_key(OnMissingKey::Skip), everywhere()),
        ("key", |o| o.key("id"), everywhere()),
        ("key_from_env", |o| o.key("id").key_from_env("BEHAVIOUR_UNSET"), everywhere()),
        ("optional", |o| o.key(payload("[id, by]").optional(["by"])), everywhere()),
        ("fingerprint", |o| o.fingerprint("amount"), everywhere()),
        ("key_functions", |o| o.key("id").key_functions(Functions::standard()), everywhere()),
        ("key_format", |o| o.key_format(KeyFormat::Readable), everywhere()),
        ("powertools", |o| o.key("id").powertools(PowertoolsKeys::python("f")), everywhere()),
        ("retention", |o| o.retention(Duration::from_mins(1)), everywhere()),
        ("lease", |o| o.lease(Lease::Renewed { length: Duration::from_secs(9) }), everywhere()),
        ("lease_grace", |o| o.lease_grace(Duration::ZERO), everywhere()),
        ("clock_skew", |o| o.clock_skew(Duration::ZERO), everywhere()),
        ("on_conflict", |o| o.on_conflict(OnConflict::Skip), everywhere()),
        ("on_failure", |o| o.on_failure(OnFailure::FailPermanently), everywhere()),
        ("max_failed_attempts", |o| o.max_failed_attempts(3), everywhere()),
        ("max_lost_attempts", |o| o.max_lost_attempts(3), everywhere()),
        ("on_timeout", |o| o.on_timeout(OnTimeout::FailPermanently), everywhere()),
        (
            "optimistic",
            Operation::optimistic,
            SOURCES.iter().chain(&OTHERS[1..]).copied().collect(),
        ),
        (
            "transactional",
            Operation::transactional,
            SOURCES.iter().chain(&OTHERS[1..]).copied().collect(),
        ),
        ("on_outage", |o| o.on_outage(OnOutage::RunUnprotected), everywhere()),
    ]
}

async fn nothing(_: Value, _: Call) -> Result<(), Failure> {
    Ok(())
}

/// Whether the place accepts the operation.
async fn accepts(operation: Operation, place: &str) -> Result<(), ConfigError> {
    let world = World::new();
    let idempotency = world.idempotency();
    let built = match place {
        "sqs" => idempotency.on(Sqs::new(), &operation, nothing),
        "sns" => idempotency.on(Sns::new(), &operation, nothing),
        "s3" => idempotency.on(S3::new(), &operation, nothing),
        "kinesis" => idempotency.on(Kinesis::new(), &operation, nothing),
        "dynamodb" => idempotency.on(DynamoDbStream::new(), &operation, nothing),
        "documentdb" => idempotency.on(DocumentDb::new(), &operation, nothing),
        "kafka" => idempotency.on(Kafka::new(), &operation, nothing),
        "activemq" => idempotency.on(ActiveMq::new(), &operation, nothing),
        "rabbitmq" => idempotency.on(RabbitMq::new(), &operation, nothing),
        "eventbridge" => idempotency.on(EventBridge::new(), &operation, nothing),
        "pipe" => idempotency.on(Pipe::of(Sqs::new()), &operation, nothing),
        "scheduler" => idempotency.on(Scheduler::new(), &operation, nothing),
        "invoke" => idempotency.on(Invoke::new(), &operation, nothing),
        "`.event(..)`" => return idempotency.event::<Value>(operation).map(drop),
        "`.run(..)`" => {
            let payload = json!({ "id": "a", "by": "b", "amount": 1 });
            let function = async |_: Call| Ok::<_, Failure>(());
            let context = world.context();
            let first =
                idempotency.run(&operation, &payload, RunContext::without_deadline(), function);
            let first = world.clock.drive(first).await;
            let second = idempotency.run(&operation, &payload, &context, function);
            let second = world.clock.drive(second).await;
            assert_eq!(first.is_ok(), second.is_ok());
            return match second {
                Err(RunError::Config(error)) => Err(error),
                done => done.map(drop).map_err(|error| panic!("{error}")),
            };
        }
        "`.run_many(..)`" => {
            let payload = json!({ "id": "a", "by": "b", "amount": 1 });
            let function = async |_: Value, _: Call| Ok::<_, Failure>(());
            let context = world.context();
            let runs = idempotency.run_many(&operation, [payload], &context, function);
            return match world.clock.drive(runs).await.remove(0) {
                Err(RunError::Config(error)) => Err(error),
                done => done.map(drop).map_err(|error| panic!("{error}")),
            };
        }
        other => panic!("no place {other}"),
    };
    built.map(drop)
}

#[tokio::test]
async fn a_setting_without_an_effect_is_refused_everywhere() {
    for (setting, set, places) in settings() {
        for place in SOURCES.iter().chain(&OTHERS) {
            let operation = set(Operation::new("place-order"));
            let found = accepts(operation, place).await;
            if places.contains(place) {
                assert_eq!(found, Ok(()), "{setting} for {place}");
                continue;
            }
            let error = found.expect_err(&format!("{setting} for {place} is ignored"));
            let text = error.to_string();
            let ConfigError::Misplaced { setting: named, .. } = &error else { panic!("{text}") };
            assert_eq!(*named, setting);
            for part in ["`place-order`", place, "remove it"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn the_refusal_says_where_the_setting_has_an_effect() {
    for (operation, place, effect) in [
        (
            Operation::new("place-order").queue("orders"),
            "sns",
            "`.queue(..)`, which has no effect for sns: it has an effect for sqs, pipe",
        ),
        (
            Operation::new("place-order").whole_record(),
            "`.run(..)`",
            "`.whole_record(..)`, which has no effect for `.run(..)`: it has an effect for event \
             sources (`.sqs(..)`, `.kinesis(..)`, ...)",
        ),
        (
            Operation::new("place-order").concurrency(1),
            "`.run(..)`",
            "`.concurrency(..)`, which has no effect for `.run(..)`: it has an effect for event \
             sources (`.sqs(..)`, `.kinesis(..)`, ...) and `.run_many(..)`",
        ),
    ] {
        assert_eq!(
            accepts(operation, place).await.unwrap_err().to_string(),
            format!(
                "operation `place-order` has {effect}; remove it, or set it only on a clone of the \
                 operation that is used there"
            )
        );
    }
}

#[test]
fn every_source_and_setting_is_tested() {
    let sources: BTreeSet<_> = lambda_idempotency::inspect::sources().collect();
    assert_eq!(sources, SOURCES.into());
    let settings: Vec<_> = settings().into_iter().map(|(setting, ..)| setting).collect();
    assert_eq!(settings.iter().copied().collect::<BTreeSet<_>>(), setters());
    assert_eq!(settings.len(), setters().len(), "each once");
}

/// The methods that set something: they take an operation and return it.
fn setters() -> BTreeSet<&'static str> {
    let files = [
        include_str!("../../src/operation/powertools.rs"),
        include_str!("../../src/operation/identity.rs"),
        include_str!("../../src/operation/mutex.rs"),
        include_str!("../../src/operation/recoverable.rs"),
        include_str!("../../src/operation/limits.rs"),
        include_str!("../../src/operation/policies.rs"),
        include_str!("../../src/operation/selection.rs"),
    ];
    let methods = files.iter().flat_map(|file| file.split("\n    pub fn ").skip(1));
    let signatures = methods.filter_map(|method| method.split('{').next());
    let setters = signatures.filter(|signature| {
        signature.contains("-> Self") && signature.contains("self") && !signature.contains("&self")
    });
    setters.filter_map(|signature| signature.split(['(', '<']).next()).collect()
}
