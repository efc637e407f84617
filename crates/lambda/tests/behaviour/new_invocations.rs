//! Events whose retries have a new request id: they are refused until the operation has a key.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lambda_idempotency::{
    Call, Failure, OnMissingKey, Operation, RunContext, RunError,
    error::Rejection,
    inspect::{self, AnySource},
    producer::KeySpec,
    source::Invoke,
};
use lambda_runtime::{LambdaEvent, service_fn, tower::ServiceBuilder};
use serde_json::{Value, json};

use crate::{
    support::{World, batch, diagnostic, notification, order, sample, serve},
    support_streams::{base64, collection, document, put},
};

fn firehose(invocation: &str) -> Value {
    json!({
        "invocationId": invocation,
        "deliveryStreamArn": "arn:aws:firehose:eu-west-1:111122223333:deliverystream/orders",
        "region": "eu-west-1",
        "records": [
            { "recordId": "r-1", "approximateArrivalTimestamp": 1_767_225_600_000_u64,
              "data": base64("{}") },
            { "recordId": "r-2", "approximateArrivalTimestamp": 1_767_225_600_000_u64,
              "data": base64("{}") },
        ],
    })
}

fn s3_batch(invocation: &str) -> Value {
    json!({
        "invocationSchemaVersion": "1.0", "invocationId": invocation, "job": { "id": "j-1" },
        "tasks": [{ "taskId": "t-1", "s3Key": "a.jpg", "s3VersionId": "1",
                    "s3BucketArn": "arn:aws:s3:::orders" }],
    })
}

fn fixture(name: &str) -> Value {
    let events = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/events/aws_lambda_events");
    let text = std::fs::read_to_string(format!("{events}/example-{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A mutation, as AppSync's resolver sends it.
fn resolved() -> Value {
    let mut event = fixture("appsync-direct-resolver");
    event["info"]["parentTypeName"] = json!("Mutation");
    event["identity"]["username"] = json!("s3cr3t");
    event
}

/// The event, its name in errors, the advice of the error, and why the whole event cannot be the key
/// (empty if it can).
fn events() -> Vec<(Value, &'static str, &'static str, &'static str)> {
    let sqs = order("m-1", "a", "");
    let gateway = |member: &str| json!({ "body": "{}", "requestContext": { member: "s3cr3t" } });
    vec![
        (batch([sqs.clone()]), "an SQS batch", "`.on(Sqs::new(), ..)`", "parts of it change"),
        (json!([sqs]), "an SQS batch", "`.on(Pipe::of(..), ..)`", "parts of it change"),
        (batch([put(1, "k", "a", "")]), "a Kinesis batch", "`.on(Kinesis::new(), ..)`", ""),
        (
            serde_json::from_str(&sample("dynamoStreamEvent")).unwrap(),
            "a DynamoDB stream batch",
            "`.on(DynamoDbStream::new(), ..)`",
            "",
        ),
        (
            serde_json::from_str(&sample("kafkaEventMsk")).unwrap(),
            "a Kafka batch",
            "`.on(Kafka::new(), ..)`",
            "",
        ),
        (
            collection([document(1, "d-1", "a", "")]),
            "a DocumentDB change stream batch",
            "`.on(DocumentDb::new(), ..)`",
            "",
        ),
        (
            serde_json::from_str(&sample("activeMQEvent")).unwrap(),
            "an ActiveMQ batch",
            "`.on(ActiveMq::new(), ..)`",
            "parts of it change",
        ),
        (
            serde_json::from_str(&sample("rabbitMQEvent")).unwrap(),
            "a RabbitMQ batch",
            "`.on(RabbitMq::new(), ..)`",
            "parts of it change",
        ),
        (gateway("requestId"), "an HTTP request", "`Idempotency::http`", "parts of it change"),
        (gateway("timeEpoch"), "an HTTP request", "`Idempotency::http`", "parts of it change"),
        (gateway("elb"), "an HTTP request", "`Idempotency::http`", "parts of it change"),
        (firehose("i-1"), "Firehose", "[deliveryStreamArn, recordId]", "parts of it change"),
        (s3_batch("i-1"), "S3 Batch Operations", "[job.id, tasks[0].taskId]", "parts of it change"),
        (
            json!({ "triggerSource": "PostConfirmation_ConfirmSignUp", "userPoolId": "eu_1",
                    "userName": "s3cr3t", "request": {}, "response": {} }),
            "Cognito",
            "`.event(..)`",
            "neither an id",
        ),
        (
            json!({ "bot": { "name": "orders" }, "invocationSource": "FulfillmentCodeHook",
                    "sessionId": "s3cr3t" }),
            "Lex",
            "`.event(..)`",
            "neither an id",
        ),
        (
            json!({ "Name": "ContactFlowEvent", "Details": { "ContactData": {} } }),
            "Amazon Connect",
            "`.event(..)`",
            "neither an id",
        ),
        (fixture("connect-event"), "Amazon Connect", "`.event(..)`", "neither an id"),
        (
            fixture("apigw-websocket-request-without-method"),
            "a WebSocket message",
            "json(body).requestId",
            "parts of it change",
        ),
        (fixture("vpc-lattice-v1-request"), "VPC Lattice", "`Idempotency::http`", "neither an id"),
        (
            fixture("bedrock-agent-runtime-event"),
            "a Bedrock agent",
            "`.event(..)`",
            "neither an id",
        ),
        (resolved(), "an AppSync resolver", "arguments.orderId", "parts of it change"),
        (
            json!([resolved(), resolved()]),
            "a batch of an AppSync",
            "run_many",
            "parts of it change",
        ),
        (
            json!({ "info": { "channel": { "path": "/orders" }, "operation": "PUBLISH" },
                    "events": [{ "id": "s3cr3t", "payload": {} }] }),
            "an AppSync channel",
            "events[*].id",
            "parts of it change",
        ),
    ]
}

#[tokio::test]
async fn a_request_id_that_is_new_on_each_retry_is_not_a_default_key() {
    for (event, what, advice, _) in events() {
        let world = World::new();
        let function =
            world.with_handler(Invoke::new(), &Operation::new("any"), world.raw_handler());
        let (kind, text) = diagnostic(world.invoke(&function, &event).await.unwrap_err());
        assert_eq!(kind, "Idempotency.RecordsReturned", "{what}");
        for part in [what, "its request id changes", advice, ".key("] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("s3cr3t"), "{text}");
        assert_eq!(world.ledger.total(), 0, "{what}: the handler was called");
        // Inspection gives the same answer.
        let shown =
            inspect::invocation(&event.to_string(), &AnySource::new(), None, &world.context())
                .unwrap();
        if let [record] = &*shown
            && record.source == "invoke"
        {
            assert!(matches!(record.identity, Err(Rejection::NoDefaultKey { .. })), "{what}");
        }
        // With a key, such events are accepted.
        let keyed = Operation::new("keyed").key("@");
        let keyed = world.with_handler(Invoke::new(), &keyed, world.raw_handler());
        for _ in 0..2 {
            assert_eq!(world.invoke(&keyed, &event).await.unwrap(), Value::Null, "{what}");
        }
        assert_eq!(world.ledger.total(), 1, "{what}");
    }
}

/// An invocation record, which the destination of another function gets.
fn to_destination() -> Value {
    json!({
        "version": "1.0", "timestamp": "2026-01-01T00:00:00.000Z",
        "requestContext": {
            "requestId": "e4b46cbf-b738-4e1e-8880-a18cdf61200e",
            "functionArn": "arn:aws:lambda:eu-west-1:111122223333:function:orders:$LATEST",
            "condition": "RetriesExhausted", "approximateInvokeCount": 3,
        },
        "requestPayload": { "orderId": "o-1" },
        "responseContext": { "statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled" },
        "responsePayload": { "errorMessage": "timed out" },
    })
}

/// Services that invoke asynchronously keep the request id, and so do invocations with your own JSON.
#[tokio::test]
async fn other_events_keep_their_default_key() {
    for event in [
        json!({ "paymentId": "p-1" }),
        json!({ "records": [], "requestContext": {} }),
        json!({ "invocationId": "mine" }),
        to_destination(),
        json!([1, 2]),
        json!({ "awslogs": { "data": "H4sIAAAA" } }),
        notification("n-1", "{}"),
        serde_json::from_str(&sample("s3Event")).unwrap(),
    ] {
        let world = World::new();
        let function =
            world.with_handler(Invoke::new(), &Operation::new("any"), world.raw_handler());
        for _ in 0..2 {
            assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null, "{event}");
        }
        assert_eq!(world.ledger.total(), 1, "{event}");
    }
}

/// A redelivery has another receipt handle, trace id or invocation id, so the whole event differs.
/// Two sign-ins of one user are the same JSON.
#[tokio::test]
async fn a_whole_event_that_differs_or_repeats_is_not_a_key() {
    for (event, what, advice, why) in events() {
        let world = World::instant();
        let ledger = world.ledger.clone();
        let idempotency = world.idempotency();
        let handler = service_fn(move |_: LambdaEvent<Value>| {
            ledger.record("event", "");
            async { Ok::<_, Failure>(()) }
        });
        let service = |operation: &Operation| {
            let layer = idempotency.event::<Value>(operation).unwrap();
            ServiceBuilder::new().layer(layer).service(handler.clone())
        };
        let whole = service(&Operation::new("any"));
        let answer = serve(whole, &event.to_string(), world.context()).await;
        let run = |payload: Value| {
            let idempotency = world.idempotency();
            async move {
                let function = async |_: Call| Ok::<_, Failure>(());
                idempotency
                    .run(&Operation::new("ran"), &payload, RunContext::without_deadline(), function)
                    .await
            }
        };
        if why.is_empty() {
            answer.unwrap();
            run(event).await.unwrap();
            assert_eq!(world.ledger.total(), 1, "{what}");
            continue;
        }
        let (kind, text) = diagnostic(answer.unwrap_err());
        assert_eq!(kind, "Idempotency.Rejected", "{what}");
        for part in [what, why, advice, ".key("] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("s3cr3t"), "{text}");
        assert_eq!(world.ledger.total(), 0, "{what}: the handler was called");
        let ran = run(event.clone()).await;
        assert!(matches!(ran, Err(RunError::Rejected(Rejection::NoDefaultKey { .. }))), "{ran:?}");

        let keyed = service(&Operation::new("keyed").key("@"));
        serve(keyed, &event.to_string(), world.context()).await.unwrap();
        let unprotected = Operation::new("open").on_missing_key(OnMissingKey::RunUnprotected);
        serve(service(&unprotected), &event.to_string(), world.context()).await.unwrap();
        assert_eq!(world.ledger.total(), 2, "{what}: once with a key, once unprotected");
    }
}

fn copying() -> Operation {
    Operation::new("copy").key("[job.id, tasks[0].taskId]")
}

/// The answers to two invocations for one task whose first attempt fails temporarily.
async fn answers_of_s3_batch(keep: fn(&Value) -> bool) -> [Value; 2] {
    let world = World::instant();
    let attempts = Arc::new(AtomicUsize::new(0));
    let copy = service_fn(move |_: LambdaEvent<Value>| {
        let is_first = attempts.fetch_add(1, Ordering::Relaxed) == 0;
        let code = if is_first { "TemporaryFailure" } else { "Succeeded" };
        async move { Ok::<_, Failure>(json!({ "results": [{ "resultCode": code }] })) }
    });
    let layer = world.idempotency().event::<Value>(&copying()).unwrap().keep(keep);
    let service = ServiceBuilder::new().layer(layer).service(copy);
    let mut answers = [Value::Null, Value::Null];
    for (invocation, answer) in ["i-1", "i-2"].into_iter().zip(&mut answers) {
        let event = s3_batch(invocation).to_string();
        *answer = serve(service.clone(), &event, world.context()).await.unwrap();
        *answer = answer["results"][0]["resultCode"].take();
    }
    answers
}

#[tokio::test]
async fn a_temporary_failure_of_s3_batch_is_tried_again_if_it_is_not_kept() {
    let answers =
        answers_of_s3_batch(|answer| answer["results"][0]["resultCode"] != "TemporaryFailure");
    assert_eq!(answers.await, ["TemporaryFailure", "Succeeded"]);
    let kept = answers_of_s3_batch(|_| true).await;
    assert_eq!(kept, ["TemporaryFailure", "TemporaryFailure"]);
}

#[tokio::test]
async fn an_answer_is_kept_if_the_keep_function_panics() {
    let answers = answers_of_s3_batch(|_| panic!("a bug of the user"));
    assert_eq!(answers.await, ["TemporaryFailure", "TemporaryFailure"]);
}

fn why_no_key(event: &Value) -> String {
    let shown =
        inspect::invocation(&event.to_string(), &AnySource::new(), None, &World::new().context())
            .unwrap();
    shown[0].identity.as_ref().unwrap_err().to_string()
}

/// A record of Firehose does not have the ARN of its stream, so a key of both needs a payload of both.
#[test]
fn the_advice_for_firehose_contains_the_payload_that_its_key_needs() {
    let payload = "json!({ \"deliveryStreamArn\": .., \"recordId\": .. })";
    let text = why_no_key(&firehose("i-1"));
    assert!(text.contains(payload) && text.contains("[deliveryStreamArn, recordId]"), "{text}");
}

/// Before sign-up, a user has no `sub`.
#[test]
fn the_advice_for_cognito_has_a_key_for_a_user_who_does_not_exist_yet() {
    let before = json!({ "triggerSource": "PreSignUp_SignUp", "userPoolId": "eu_1", "userName": "ann",
        "request": { "userAttributes": { "email": "ann@example.com" } }, "response": {} });
    let text = why_no_key(&before);
    let keys: Vec<_> =
        text.split(".key(\"").skip(1).filter_map(|key| key.split('"').next()).collect();
    let finds = |key: &&str| {
        let spec = KeySpec::new("greet", *key).producer();
        spec.is_ok_and(|keys| keys.key(&before.to_string()).is_ok())
    };
    assert_eq!(
        keys.into_iter().filter(finds).collect::<Vec<_>>(),
        ["[userPoolId, userName, triggerSource]"]
    );
}

/// The page about invocations recommends these keys: each has a value in AWS's sample of its event.
#[test]
fn recommended_keys_find_their_value() {
    let page = include_str!("../../src/guide/sources/invoke.md");
    let mut connected = fixture("apigw-websocket-request-without-method");
    connected["requestContext"]["authorizer"] = json!({ "principalId": "ann" });
    connected["body"] = json!(r#"{ "requestId": "r-1" }"#);
    let mut mutation = resolved();
    mutation["identity"] = json!({ "sub": "ann" });
    mutation["arguments"] = json!({ "orderId": "o-1" });
    let published = json!({ "info": { "channel": { "path": "/orders" }, "operation": "PUBLISH" },
                            "events": [{ "id": "e-1", "payload": {} }] });
    for (event, key) in [
        (connected, "[requestContext.authorizer.principalId, json(body).requestId]"),
        (mutation, "[info.parentTypeName, info.fieldName, identity.sub, arguments.orderId]"),
        (published, "[info.channel.path, events[*].id]"),
        (
            fixture("cloudwatch_logs-event"),
            "json(base64_gzip(awslogs.data)).[owner, logGroup, logStream, logEvents[*].id]",
        ),
        (fixture("config-event"), "resultToken"),
        (fixture("codepipeline_job-event"), r#""CodePipeline.job".id"#),
        (fixture("ses-lambda-event"), "Records[0].ses.mail.messageId"),
    ] {
        assert!(page.contains(&format!(".key({key:?})")), "{key}");
        let keys = KeySpec::new("any", key).producer().unwrap();
        keys.key(&event.to_string()).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}
