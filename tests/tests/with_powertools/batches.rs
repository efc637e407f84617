//! SQS batches: Powertools' batch processor with an idempotent record handler, and a function of this library.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use lambda_idempotency::{
    Call, Failure, Operation,
    keys::{KeyPath, record},
    source::Sqs,
    testing,
};
use lambda_idempotency_tests::events::{batch, message, order};
use serde_json::{Value, json};

use crate::{
    Language, Shared,
    theirs::{self, Form, Settings},
};

/// What Powertools hashes, and where the same value is for this library.
fn keys() -> [(&'static str, KeyPath); 3] {
    [
        ("messageId", record("messageId").into()),
        ("powertools_json(body).orderId", record("powertools_json(body).orderId").into()),
        ("powertools_json(body).orderId", KeyPath::from("orderId")),
    ]
}

/// The same two messages, as they are delivered each time.
fn event(receive: u32) -> Value {
    let mut messages = [message("m-1", &order("o-1")), message("m-2", &order("o-2"))];
    for message in &mut messages {
        message["receiptHandle"] = format!("handle-{receive}").into();
        message["attributes"]["ApproximateReceiveCount"] = receive.to_string().into();
    }
    batch(messages)
}

/// Delivers a batch to our function: how many of its records were processed. All are acknowledged.
async fn deliver(shared: &Shared, (operation, source): (Operation, Sqs), event: &Value) -> u32 {
    let processed = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&processed);
    let handler = move |_: Value, _: Call| {
        counted.fetch_add(1, Relaxed);
        async { Ok::<_, Failure>(()) }
    };
    let function = shared.ours.idempotency(None).on(source, &operation, handler).unwrap();
    let answer = testing::invoke(&function, event).await.unwrap();
    assert_eq!(answer, json!({ "batchItemFailures": [] }));
    processed.load(Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_one_side_processed_is_acknowledged_by_the_other() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        for (theirs, ours) in keys() {
            println!("{language:?}: {theirs}, {ours:?}");
            let settings = Settings { prefix: None, form: Form::Records, ..Settings::by(theirs) };
            let operation = (shared.ours.operation(&settings), Sqs::new().key(ours));
            let mut call = |receive: u32| {
                let event = event(receive).to_string();
                let answer = shared.theirs.call(&settings, theirs::Call::new(&event, "true"));
                assert_eq!(answer["result"], json!({ "batchItemFailures": [] }), "{answer}");
                answer["executed"].as_u64().unwrap()
            };
            assert_eq!(call(1), 2);
            assert_eq!(deliver(&shared, operation.clone(), &event(2)).await, 0);
            shared.empty();
            assert_eq!(deliver(&shared, operation, &event(1)).await, 2);
            let event = event(2).to_string();
            let answer = shared.theirs.call(&settings, theirs::Call::new(&event, "true"));
            let expected = json!({ "executed": 0, "result": { "batchItemFailures": [] } });
            assert_eq!(answer, expected);
            shared.empty();
        }
    }
}
