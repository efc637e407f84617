//! In the place of Lambda: its sandboxes, its pollers, and what it logs.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use lambda_idempotency_local::{DynamoDb, FunctionConfig, InvocationResult, Local};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::stack::{Services, Stack};

/// As in the template, with fewer seconds.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
const SANDBOXES: usize = 6;

/// The function, as Lambda runs it.
pub(crate) struct Lambda {
    services: Services,
    stack: Stack,
    idle: Mutex<Vec<Sandbox>>,
    places: Semaphore,
    requests: AtomicU64,
}

/// An execution environment. Its log stream outlives its process.
struct Sandbox {
    local: Local,
    stream: String,
    lines: Arc<Mutex<Vec<(i64, String)>>>,
}

impl Lambda {
    pub(crate) async fn start(
        services: &Services,
        stack: &Stack,
        binary: PathBuf,
        mistake: &str,
    ) -> Arc<Self> {
        let dynamodb = DynamoDb::start().await.unwrap(); // not used: the tables are elsewhere
        let mut idle = Vec::new();
        for number in 0..SANDBOXES {
            let stream = format!("2026/01/01/[$LATEST]{number}");
            let lines: Arc<Mutex<Vec<(i64, String)>>> = Arc::default();
            let function = FunctionConfig::new(&binary)
                .timeout(TIMEOUT)
                .env("AWS_ENDPOINT_URL_DYNAMODB", &services.dynamodb_url)
                .env("AWS_LAMBDA_LOG_STREAM_NAME", &stream)
                .env("IDEMPOTENCY_APPLICATION", &stack.name)
                .env("IDEMPOTENCY_TABLE", &stack.table)
                .env("PROVE_LEDGER", &stack.ledger)
                .env("PROVE_MISTAKE", mistake);
            let said = Arc::clone(&lines);
            let local = Local::builder(function)
                .dynamodb(dynamodb.clone())
                .on_output(move |line| said.lock().unwrap().push((now(), line.text)));
            let create = services.logs.create_log_stream().log_group_name(&stack.logs);
            create.log_stream_name(&stream).send().await.unwrap();
            idle.push(Sandbox { local: local.start().await.unwrap(), stream, lines });
        }
        let (services, stack) = (services.clone(), stack.clone());
        let (idle, places) = (Mutex::new(idle), Semaphore::new(SANDBOXES));
        Arc::new(Self { services, stack, idle, places, requests: AtomicU64::new(0) })
    }

    fn request(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-8000-{number:012x}")
    }

    /// Invokes the function in a free sandbox, and logs what it said and how it ended.
    async fn invoke(&self, request: &str, event: &Value) -> InvocationResult {
        let _place = self.places.acquire().await.unwrap();
        let sandbox = self.idle.lock().unwrap().pop().unwrap();
        let invocation = sandbox.local.invoke_bytes(request, event.to_string()).await.unwrap();
        let ms = invocation.duration.as_secs_f64() * 1000.0;
        let (status, error) = match &invocation.result {
            InvocationResult::Response(_) | InvocationResult::NotJson(_) => ("success", None),
            InvocationResult::FunctionError { kind, .. } => ("error", Some(kind.clone())),
            InvocationResult::TimedOut => ("timeout", None),
            InvocationResult::Exited { .. } => ("failure", Some("Runtime.ExitError".to_owned())),
        };
        let report = json!({
            "time": "2026-01-01T00:00:00.000Z",
            "type": "platform.report",
            "record": {
                "requestId": request,
                "status": status,
                "errorType": error,
                "metrics": {
                    "durationMs": ms, "billedDurationMs": ms.ceil(), "memorySizeMB": 256, "maxMemoryUsedMB": 40,
                },
            },
        });
        let mut lines = std::mem::take(&mut *sandbox.lines.lock().unwrap());
        lines.push((now(), report.to_string()));
        let events = lines.into_iter().map(|(at, text)| {
            InputLogEvent::builder().timestamp(at).message(text).build().unwrap()
        });
        let put = self.services.logs.put_log_events().log_group_name(&self.stack.logs);
        let put = put.log_stream_name(&sandbox.stream).set_log_events(Some(events.collect()));
        put.send().await.unwrap();
        self.idle.lock().unwrap().push(sandbox);
        invocation.result
    }

    /// Polls a queue, as an event source mapping with `ReportBatchItemFailures` does.
    pub(crate) async fn poll(self: Arc<Self>, queue: String, arn: String) {
        loop {
            let messages = self.receive(&queue).await;
            if messages.is_empty() {
                continue;
            }
            let records: Vec<Value> =
                messages.iter().map(|message| record(message, &arn)).collect();
            let event = json!({ "Records": records });
            let result = self.invoke(&self.request(), &event).await;
            let InvocationResult::Response(response) = result else { continue };
            let failures = response["batchItemFailures"].as_array().cloned().unwrap_or_default();
            let is_failed = |message: &&Message| {
                let id = message.message_id.as_deref();
                failures.iter().any(|failure| failure["itemIdentifier"].as_str() == id)
            };
            for message in messages.iter().filter(|message| !is_failed(message)) {
                self.delete(&queue, message).await;
            }
        }
    }

    async fn receive(&self, queue: &str) -> Vec<Message> {
        let request = self.services.sqs.receive_message().queue_url(queue);
        let request = request.max_number_of_messages(10).wait_time_seconds(1);
        let all = MessageSystemAttributeName::All;
        request
            .message_system_attribute_names(all)
            .send()
            .await
            .unwrap()
            .messages
            .unwrap_or_default()
    }

    async fn delete(&self, queue: &str, message: &Message) {
        let handle = message.receipt_handle.as_deref().unwrap();
        let delete = self.services.sqs.delete_message().queue_url(queue).receipt_handle(handle);
        // Too late, perhaps: then it is delivered again.
        let _ = delete.send().await;
    }
}

/// A message as Lambda hands it over.
fn record(message: &Message, arn: &str) -> Value {
    let attributes = message.attributes.iter().flatten();
    let attributes = attributes.map(|(name, value)| (name.as_str().to_owned(), json!(value)));
    json!({
        "messageId": message.message_id,
        "receiptHandle": message.receipt_handle,
        "body": message.body,
        "attributes": attributes.collect::<serde_json::Map<_, _>>(),
        "messageAttributes": {},
        "md5OfBody": message.md5_of_body,
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": crate::stack::REGION,
    })
}

#[allow(clippy::disallowed_methods, reason = "the times of log lines are real")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
