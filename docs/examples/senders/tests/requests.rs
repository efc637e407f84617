//! What is made of answers that MiniStack does not give: refused requests, and messages that only some were stored of.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use aws_config::{BehaviorVersion, Region, SdkConfig, retry::RetryConfig};
use aws_sdk_sqs::config::Credentials;
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn},
    orchestrator::{HttpRequest, HttpResponse},
};
use aws_smithy_types::body::SdkBody;
use lambda_idempotency::{
    clock::{Clock as _, SystemClock, Timestamp},
    outbox::{OutgoingMessage, SendError, Sender as _, messages},
    store::{IdempotencyRecord, Key, Status},
};
use senders::Senders;
use serde_json::{Value, json};

/// Gives these answers, one after the other, and keeps the requests.
#[derive(Clone, Debug, Default)]
struct Service {
    answers: Arc<Mutex<VecDeque<(u16, Value)>>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl HttpConnector for Service {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = request.body().bytes().expect("a body");
        // SNS takes a form.
        let form = || Value::from(String::from_utf8_lossy(body));
        let body = serde_json::from_slice(body).unwrap_or_else(|_| form());
        self.requests.lock().unwrap().push(body);
        let (status, body) = self.answers.lock().unwrap().pop_front().expect("an answer");
        let status = status.try_into().expect("a status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body.to_string()))))
    }
}

impl Service {
    fn new(answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        let answers = answers.into_iter().collect();
        Self { answers: Arc::new(Mutex::new(answers)), ..Self::default() }
    }

    async fn config(&self) -> SdkConfig {
        let service = self.clone();
        aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(http_client_fn(move |_, _| SharedHttpConnector::new(service.clone())))
            .retry_config(RetryConfig::disabled())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .load()
            .await
    }

    /// Sends messages that a handler has published: of each, whether it was sent, or the error.
    async fn send(&self, published: Value) -> Vec<Result<(), String>> {
        let answers = self.send_some(published).await;
        assert!(self.answers.lock().unwrap().is_empty(), "fewer requests than answers");
        answers.into_iter().map(|answer| answer.map_err(|error| error.to_string())).collect()
    }

    async fn send_some(&self, published: Value) -> Vec<Result<(), SendError>> {
        let sent = outgoing(published);
        let deadline = SystemClock.now().plus(std::time::Duration::from_secs(10));
        Senders::new(&self.config().await).send(&sent, deadline).await
    }

    /// How many entries each request had.
    fn entries(&self) -> Vec<usize> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|request| request["Entries"].as_array().unwrap().len()).collect()
    }
}

fn outgoing(published: Value) -> Vec<OutgoingMessage> {
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
    record.outbox = Some(published.to_string().into());
    messages(&Key::from_text("place#1"), &record).expect("an outbox")
}

fn to(queue: &str, count: usize) -> Value {
    (0..count).map(|number| json!({ "to": queue, "body": format!("s3cr3t {number}") })).collect()
}

const QUEUE: &str = "https://sqs.us-east-1.amazonaws.com/123456789012/parcels";

fn stored(ids: &[&str]) -> Value {
    let of = |id: &&str| json!({ "Id": id, "MessageId": "m", "MD5OfMessageBody": "x" });
    json!({ "Successful": ids.iter().map(of).collect::<Vec<_>>(), "Failed": [] })
}

fn error(code: &str) -> Value {
    json!({ "__type": code, "message": "s3cr3t is not valid" })
}

#[tokio::test]
async fn a_message_that_the_service_refuses_does_not_keep_back_the_others() {
    let refused = (400, error("com.amazonaws.sqs#InvalidMessageContents"));
    let service =
        Service::new([refused.clone(), (200, stored(&["0"])), refused, (200, stored(&["2"]))]);
    let answers = service.send(to(QUEUE, 3)).await;
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    let said = answers[1].as_ref().unwrap_err();
    assert!(
        said.contains("SQS answered InvalidMessageContents") && !said.contains("s3cr3t"),
        "{said}"
    );
    assert_eq!(service.entries(), [3, 1, 1, 1]);
}

#[tokio::test]
async fn a_request_that_is_throttled_or_fails_is_not_divided() {
    for (status, code) in
        [(400, "ThrottlingException"), (403, "RequestThrottled"), (500, "InternalError")]
    {
        let service = Service::new([(status, error(code))]);
        let answers = service.send(to(QUEUE, 2)).await;
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        assert_eq!(service.entries(), [2]);
    }
}

#[tokio::test]
async fn only_a_message_that_the_answer_names_as_stored_is_sent() {
    let mut answer = stored(&["1"]);
    answer["Failed"] = json!([{ "Id": "0", "Code": "InternalError", "SenderFault": false }]);
    let answers = Service::new([(200, answer)]).send(to(QUEUE, 3)).await;
    assert!(answers[1].is_ok(), "{answers:?}");
    assert!(answers[0].as_ref().unwrap_err().contains("SQS refused it with InternalError"));
    assert!(answers[2].as_ref().unwrap_err().contains("an error without a code"));
}

#[tokio::test]
async fn a_message_to_a_fifo_queue_or_topic_needs_a_group() {
    for destination in [&format!("{QUEUE}.fifo"), "arn:aws:sns:us-east-1:123456789012:parcels.fifo"]
    {
        let answers = Service::default().send(to(destination, 1)).await;
        let said = answers[0].as_ref().unwrap_err();
        assert!(said.contains("needs a group; add `with_group`"), "{said}");
    }
}

#[tokio::test]
async fn an_event_without_an_id_in_the_answer_is_not_sent() {
    let attributes = json!({ "source": "shop", "detail-type": "OrderPlaced" });
    let event = json!({ "to": "orders", "body": "{}", "attributes": attributes });
    let grouped = json!({ "to": "orders", "body": "{}", "attributes": attributes, "group": "g" });
    let entries = json!([{ "EventId": "e" }, { "ErrorCode": "InternalFailure" }]);
    let service = Service::new([(200, json!({ "FailedEntryCount": 1, "Entries": entries }))]);
    let answers = service.send(json!([event, event, grouped, to("orders", 1)[0]])).await;
    assert!(answers[0].is_ok(), "{answers:?}");
    assert!(answers[1].as_ref().unwrap_err().contains("refused it with InternalFailure"));
    for answer in &answers[2..] {
        assert!(answer.as_ref().unwrap_err().contains("needs the attributes `source`"));
    }
    assert_eq!(service.entries(), [2]);
    let requests = service.requests.lock().unwrap();
    assert_eq!(requests[0]["Entries"][0]["Resources"][0].as_str().unwrap().len(), 64);
}

/// As an earlier version may have stored it.
#[tokio::test]
async fn an_attribute_of_the_message_does_not_replace_its_id() {
    let attributes = json!({ "idempotency-key": "its-own", "tenant": "acme" });
    let to = |to: &str| json!([{ "to": to, "body": "1", "attributes": attributes }]);
    let id = outgoing(to(QUEUE))[0].id().to_owned();
    let service = Service::new([(200, stored(&["0"])), (500, Value::Null)]);
    for destination in [QUEUE, "arn:aws:sns:us-east-1:123456789012:parcels"] {
        service.send_some(to(destination)).await;
    }
    let requests = service.requests.lock().unwrap();
    let attributes = &requests[0]["Entries"][0]["MessageAttributes"];
    assert_eq!(attributes["idempotency-key"]["StringValue"], *id);
    assert_eq!(attributes["tenant"]["StringValue"], "acme");
    let form = requests[1].as_str().unwrap();
    assert!(form.contains(&id) && form.contains("acme") && !form.contains("its-own"), "{form}");
}

#[tokio::test]
async fn a_request_has_ten_messages_and_256_kilobytes_at_most() {
    let ids: Vec<String> = (0..23).map(|id| id.to_string()).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let service = Service::new([0..10, 10..20, 20..23].map(|range| (200, stored(&ids[range]))));
    let answers = service.send(to(QUEUE, 23)).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let long = json!({ "to": QUEUE, "body": "x".repeat(100 * 1024) });
    let service = Service::new([(200, stored(&["0", "1"])), (200, stored(&["2"]))]);
    let answers = service.send(json!([long, long, long])).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(service.entries(), [2, 1]);
}
