//! Calls, bad records, and errors of `run`.

use std::sync::{Arc, Mutex};

use lambda_idempotency::{
    Call, Failure, Idempotency, MemoryStore, Operation, RunContext, RunError, inspect, record,
    source::{DivertedRecord, RabbitMq, Sqs},
    testing,
};
use serde_json::{Value, json};

use super::shown::{SECRET, Shown};

#[tokio::test]
async fn calls_and_bad_records() {
    let shown = Shown::default();
    let idempotency = Idempotency::new(MemoryStore::new());
    let (bad, call) = (shown.clone(), shown.clone());
    let operation = Operation::new("op").key("id");
    let source = Sqs::new().divert_bad_records(move |record: DivertedRecord| {
        bad.debug(&record);
        async { Ok::<(), Failure>(()) }
    });
    let handler = move |_: Value, this: Call| {
        call.debug(&this);
        assert!(this.raw_record().unwrap().contains(SECRET));
        call.error(&this.record_as::<Vec<u8>>().unwrap_err());
        async { Err::<(), _>(Failure::transient(SECRET)) }
    };
    let message = |body: String| {
        json!({
            "messageId": "m", "eventSource": "aws:sqs", "body": body,
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
        })
    };
    let bodies = [
        json!({ "id": SECRET }).to_string(),
        json!({ "id": null, "x": SECRET }).to_string(),
        SECRET.to_owned(),
    ];
    let function = idempotency.on(source, &operation, handler).unwrap();
    for body in bodies {
        let event = json!({ "Records": [message(body)] });
        if let Err(error) = testing::invoke(&function, &event).await {
            shown.error(&error);
        }
        for record in inspect::event(&event.to_string(), Some(&operation)).unwrap() {
            shown.debug(&record);
            if let Some(Err(error)) = record.key.map(|key| key.key) {
                shown.error(&error);
            }
        }
    }
    for event in [json!({ SECRET: SECRET }), json!([SECRET]), json!(SECRET)] {
        shown.error(&testing::invoke(&function, &event).await.unwrap_err());
    }
    shown.debug(&operation);
    shown.debug(&Sqs::new().key(record("body")));
    shown.error(&inspect::event(&format!("{{\"{SECRET}"), None).unwrap_err());
    shown.assert_silent(&[
        "DivertedRecord",
        "Call",
        "inspect::Record: Record {",
        "RecordKey",
        "not from a source",
        "Operation",
    ]);
}

/// An id that an application has chosen is treated like its payload.
#[tokio::test]
async fn records_with_ids_that_applications_chose() {
    let shown = Shown::default();
    let (calls, bad) = (shown.clone(), shown.clone());
    let ids = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ids);
    let handler = move |_: Value, call: Call| {
        calls.debug(&call);
        calls.debug(call.record());
        seen.lock().unwrap().push(call.record().id.to_string());
        async { Err::<(), _>(Failure::transient("it failed")) }
    };
    let source = RabbitMq::new().divert_bad_records(move |record: DivertedRecord| {
        bad.debug(&record);
        async { Ok::<(), Failure>(()) }
    });
    let operation = Operation::new("op");
    let rabbit = |data: &str| {
        let message = json!({ "basicProperties": { "messageId": SECRET }, "data": data });
        let queues = json!({ "orders::/": [message] });
        json!({
            "eventSource": "aws:rmq", "eventSourceArn": "arn:aws:mq:eu-west-1:1:broker:shop:b-1",
            "rmqMessagesByQueue": queues,
        })
    };
    let function = Idempotency::new(MemoryStore::new()).on(source, &operation, handler);
    let function = function.unwrap();
    for data in ["e30=", "no base64!"] {
        let event = rabbit(data);
        if let Err(error) = testing::invoke(&function, &event).await {
            shown.error(&error);
        }
        for record in inspect::event(&event.to_string(), Some(&operation)).unwrap() {
            shown.debug(&record);
        }
    }
    shown.assert_silent(&[
        "Call",
        "DivertedRecord",
        "RecordId",
        "rabbitmq record #",
        "inspect::Record: Record {",
    ]);
    assert_eq!(*ids.lock().unwrap(), [SECRET], "the handler gets the id, as it gets the payload");
}

#[tokio::test]
async fn errors_of_run() {
    let shown = Shown::default();
    let idempotency = Idempotency::new(MemoryStore::new());
    let by_id = Operation::new("op").key("id").fingerprint("note");
    let payload = |id: &str, note: &str| json!({ "id": format!("{SECRET}-{id}"), "note": note });
    let fails = async |payload: &Value, failure: Failure| -> RunError {
        let run = idempotency.run(&by_id, payload, RunContext::without_deadline(), |_| async {
            Err::<(), _>(failure)
        });
        run.await.unwrap_err()
    };
    shown.error(&fails(&payload("a", SECRET), Failure::transient(SECRET)).await);
    shown.error(&fails(&payload("b", SECRET), Failure::permanent(SECRET)).await);
    shown.error(&fails(&payload("b", SECRET), Failure::permanent(SECRET)).await);
    shown.error(&fails(&json!({ "note": SECRET }), Failure::transient(SECRET)).await);
    let done = payload("c", SECRET);
    let run = idempotency
        .run(&by_id, &done, RunContext::without_deadline(), |_| async { Ok::<_, Failure>(1) });
    assert!(!run.await.unwrap().replayed);
    let other = payload("c", "another");
    let run = idempotency
        .run(&by_id, &other, RunContext::without_deadline(), |_| async { Ok::<_, Failure>(1) });
    shown.error(&run.await.unwrap_err());
    let run = idempotency.run(&by_id, &done, RunContext::without_deadline(), |_| async {
        Ok::<String, Failure>("".into())
    });
    shown.error(&run.await.unwrap_err());
    shown.assert_silent(&["handler failed", "permanently", "another payload", "another type"]);
}
