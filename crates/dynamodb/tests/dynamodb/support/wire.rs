//! The HTTP connection of a test: it records the requests, and injects the configured faults.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::config::{
    HttpClient, RuntimeComponents, SharedHttpClient,
    http::{HttpRequest, HttpResponse},
};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector},
    result::ConnectorError,
};
use aws_smithy_types::date_time::{DateTime, Format};
use dynoxide::Database;
use http_body_util::BodyExt;
use serde_json::{Value, json};

/// A fault of one request.
pub enum Fault {
    /// No fault.
    Pass,
    /// The request is applied, and the connection breaks before the answer.
    LoseAnswer,
    /// The request is applied, and no answer ever comes.
    Hang,
    /// The request is applied, but answered with this HTTP status.
    Status(u16),
    /// The request is not applied, and gets this answer.
    Instead(u16, Value),
    /// The request is refused because of its time, by a server whose clock is ahead by this much.
    Skewed(Duration),
    /// These members of a batch are not applied and answered with this code.
    Refuse(Vec<usize>, &'static str),
    /// These members of a batch are applied and answered with this code.
    Belie(Vec<usize>, &'static str),
    /// Only this many members of a batch, the first ones, are applied and answered.
    Only(usize),
    /// The request is applied, and answered so late.
    Slow(Duration),
    /// The table is changed before the request is applied.
    Before(Box<dyn FnOnce(&Database) + Send + Sync>),
}

impl Fault {
    /// The answer of the service with this error code.
    pub fn error(code: &str) -> Self {
        let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
        Self::Instead(400, json!({"__type": kind, "message": "it says so"}))
    }
}

/// A connector that records requests and injects faults.
pub struct Wire {
    inner: SharedHttpClient,
    db: Database,
    sent: Mutex<Vec<(String, Value)>>,
    /// The times that requests were signed with.
    signed: Mutex<Vec<SystemTime>>,
    faults: Mutex<VecDeque<Fault>>,
    withholds_items: AtomicBool,
    refuses_batches: AtomicBool,
    /// How many requests have no answer yet, and the most of them at a time.
    open: Mutex<(usize, usize)>,
}

/// A request without an answer.
struct OpenRequest(Arc<Wire>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.lock().unwrap().0 -= 1;
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    pub fn new(db: Database) -> Arc<Self> {
        let inner = aws_smithy_http_client::Builder::new().build_http();
        let (sent, signed, faults) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (withholds_items, refuses_batches) = Default::default();
        let open = Mutex::default();
        Arc::new(Self { inner, db, sent, signed, faults, withholds_items, refuses_batches, open })
    }

    pub fn client(self: &Arc<Self>) -> SharedHttpClient {
        SharedHttpClient::new(Handle(self.clone()))
    }

    /// Sets the faults of the next requests, in order.
    pub fn fault(&self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// From now on, a member of a batch whose condition failed is answered without the item.
    ///
    /// The API reference says that the item is in the answer if the request asks for it with
    /// `ALL_OLD`, and the embedded server puts it there for an `UPDATE` and a `DELETE`. People who
    /// recorded the service's answers found none, so the store has to work with both.
    pub fn withhold_items(&self) {
        self.withholds_items.store(true, Ordering::Relaxed);
    }

    /// From now on, each batch is refused as a whole, as if one of its members were not valid.
    pub fn refuse_batches(&self) {
        self.refuses_batches.store(true, Ordering::Relaxed);
    }

    /// Removes the faults that no request has met yet.
    pub fn heal(&self) {
        self.faults.lock().unwrap().clear();
    }

    /// The requests since the last call: operations and bodies.
    pub fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }

    /// The times that all requests so far were signed with.
    pub fn signed(&self) -> Vec<SystemTime> {
        self.signed.lock().unwrap().clone()
    }

    /// The most requests that had no answer at the same time.
    pub fn most_at_once(&self) -> usize {
        self.open.lock().unwrap().1
    }

    fn begin(self: &Arc<Self>) -> OpenRequest {
        let mut open = self.open.lock().unwrap();
        open.0 += 1;
        open.1 = open.1.max(open.0);
        OpenRequest(self.clone())
    }

    /// The operations sent since the last call.
    pub fn operations(&self) -> Vec<String> {
        self.take().into_iter().map(|(operation, _)| operation).collect()
    }
}

#[derive(Clone, Debug)]
struct Handle(Arc<Wire>);

impl HttpClient for Handle {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.0.inner.http_connector(settings, components);
        SharedHttpConnector::new(Connector { wire: self.0.clone(), inner })
    }
}

#[derive(Debug)]
struct Connector {
    wire: Arc<Wire>,
    inner: SharedHttpConnector,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let open = self.wire.begin();
        let answer = self.answer(request);
        let withholds_items = self.wire.withholds_items.load(Ordering::Relaxed);
        HttpConnectorFuture::new(async move {
            let answer = answer.await;
            drop(open);
            if withholds_items { Ok(without_items(answer?).await) } else { answer }
        })
    }
}

impl Connector {
    fn answer(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let mut body: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        self.wire.sent.lock().unwrap().push((operation, body.clone()));
        let signed = signing_time(request.headers().get("x-amz-date").unwrap());
        self.wire.signed.lock().unwrap().push(signed);
        if body.get("Statements").is_some() && self.wire.refuses_batches.load(Ordering::Relaxed) {
            let kind = "com.amazonaws.dynamodb.v20120810#ValidationException";
            return HttpConnectorFuture::ready(Ok(answer(400, &json!({"__type": kind}))));
        }
        let fault = self.wire.faults.lock().unwrap().pop_front().unwrap_or(Fault::Pass);
        match fault {
            Fault::Pass => self.inner.call(request),
            Fault::Before(act) => {
                act(&self.wire.db);
                self.inner.call(request)
            }
            Fault::Instead(status, body) => HttpConnectorFuture::ready(Ok(answer(status, &body))),
            Fault::Skewed(ahead) => HttpConnectorFuture::ready(Ok(too_late(signed + ahead))),
            Fault::Slow(late) => {
                let sent = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    tokio::time::sleep(late).await;
                    sent.await
                })
            }
            Fault::LoseAnswer => {
                let sent = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    collect(sent.await?).await;
                    Err(ConnectorError::io("connection reset by peer".into()))
                })
            }
            Fault::Hang => {
                let sent = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    collect(sent.await?).await;
                    std::future::pending().await
                })
            }
            Fault::Status(status) => {
                let sent = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    collect(sent.await?).await;
                    Ok(answer(status, &json!({"message": "it says so"})))
                })
            }
            Fault::Refuse(members, code) => {
                let statements = body["Statements"].as_array_mut().unwrap();
                for index in members.iter().rev() {
                    statements.remove(*index);
                }
                let none_left = statements.is_empty();
                let sent = resend(&self.inner, &mut request, &body);
                HttpConnectorFuture::new(async move {
                    let mut answered = json!({"Responses": []});
                    if !none_left {
                        answered = collect(sent.await?).await;
                    }
                    for index in members {
                        let responses = answered["Responses"].as_array_mut().unwrap();
                        responses.insert(index, refusal(code));
                    }
                    Ok(answer(200, &answered))
                })
            }
            Fault::Only(answered) => {
                body["Statements"].as_array_mut().unwrap().truncate(answered);
                resend(&self.inner, &mut request, &body)
            }
            Fault::Belie(members, code) => {
                let sent = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    let mut answered = collect(sent.await?).await;
                    for index in members {
                        answered["Responses"][index] = refusal(code);
                    }
                    Ok(answer(200, &answered))
                })
            }
        }
    }
}

/// The time in a header like `20261122T050000Z`.
fn signing_time(basic: &str) -> SystemTime {
    let [date, time] = basic.split('T').collect::<Vec<_>>().try_into().unwrap();
    let date = [&date[..4], &date[4..6], &date[6..]].join("-");
    let time = [&time[..2], &time[2..4], &time[4..]].join(":");
    let time = DateTime::from_str(&format!("{date}T{time}"), Format::DateTime).unwrap();
    time.try_into().unwrap()
}

/// The answer of a server whose clock shows `now` to a request that was signed much earlier.
fn too_late(now: SystemTime) -> HttpResponse {
    let kind = "com.amazon.coral.service#InvalidSignatureException";
    let message = "Signature expired: 20261122T050000Z is now earlier than 20261122T050500Z";
    let mut response = answer(400, &json!({"__type": kind, "message": message}));
    let date = DateTime::from(now).fmt(Format::HttpDate).unwrap();
    response.headers_mut().insert("date", date);
    response
}

fn refusal(code: &str) -> Value {
    json!({"Error": {"Code": code, "Message": "it says so"}})
}

fn resend(
    inner: &SharedHttpConnector,
    request: &mut HttpRequest,
    body: &Value,
) -> HttpConnectorFuture {
    let bytes = body.to_string();
    let mut changed = request.try_clone().unwrap();
    changed.headers_mut().insert("content-length", bytes.len().to_string());
    *changed.body_mut() = bytes.into();
    inner.call(changed)
}

/// The answer to a batch of statements without the items that it found; any other as it is.
async fn without_items(response: HttpResponse) -> HttpResponse {
    let status = response.status().as_u16();
    let mut body = collect(response).await;
    if let Some(Value::Array(members)) = body.get_mut("Responses") {
        for error in members.iter_mut().filter_map(|member| member.get_mut("Error")) {
            error.as_object_mut().unwrap().remove("Item");
        }
    }
    answer(status, &body)
}

async fn collect(response: HttpResponse) -> Value {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

fn answer(status: u16, body: &Value) -> HttpResponse {
    let mut response =
        HttpResponse::new(status.try_into().unwrap(), body.to_string().into_bytes().into());
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}
