//! A world for tests: one store, one clock, a handler that follows the request's body, and requests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_http::{
    Body, Request, RequestExt as _,
    http::{Method, Response, StatusCode},
    tower::{Layer as _, Service as _, ServiceExt as _, service_fn},
};
use lambda_idempotency::{
    Call, Idempotency, MemoryStore, Operation,
    clock::Timestamp,
    http::{HandlerError, Http, HttpLayer},
};
use lambda_idempotency_core::clock::{BoxFuture, Clock as _};
use lambda_idempotency_testkit::{clock::ManualClock, faults::FaultyStore};
use lambda_runtime::Context;
use serde_json::Value;

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: FaultyStore<MemoryStore>,
    /// How often the handler was called.
    pub(crate) calls: Arc<AtomicUsize>,
}

/// The handler's error.
#[derive(Debug, thiserror::Error)]
#[error("the card machine is on fire")]
pub(crate) struct OnFire;

impl World {
    /// A world whose store takes time, as all do: what happens meanwhile would stay hidden.
    pub(crate) fn new() -> Self {
        let mut world = Self::instant();
        world.store = world.store.taking(world.clock.clone(), Duration::from_millis(8));
        world
    }

    /// A world whose store answers at once, for tests that do not drive the clock.
    pub(crate) fn instant() -> Self {
        Self {
            clock: ManualClock::new(Timestamp::from_secs(1_700_000_000)),
            store: FaultyStore::new(MemoryStore::new()),
            calls: Arc::default(),
        }
    }

    pub(crate) fn idempotency(&self) -> Idempotency {
        Idempotency::new(self.store.clone()).with_clock(self.clock.clone()).without_log()
    }

    pub(crate) fn layer(&self, operation: &Operation) -> HttpLayer {
        if operation.producer().is_ok() {
            self.layer_with(operation, Http::by_body())
        } else {
            self.layer_with(operation, Http::by_header())
        }
    }

    pub(crate) fn layer_with<K>(&self, operation: &Operation, http: Http<K>) -> HttpLayer {
        self.idempotency().http(operation, http).unwrap()
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Answers with the status in the body (201 by default) and the number of the call.
    pub(crate) fn handle(
        &self,
        request: Request,
    ) -> BoxFuture<'static, Result<Response<Body>, OnFire>> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let clock = self.clock.clone();
        let failed_attempts = request.extensions().get::<Call>().map(Call::failed_attempts);
        Box::pin(async move {
            let body = String::from_utf8_lossy(request.body()).into_owned();
            if body.contains("burn") {
                return Err(OnFire);
            }
            if body.contains("sleep") {
                clock.sleep(Duration::from_secs(3600)).await;
            }
            if body.contains("wait") {
                clock.sleep(Duration::from_secs(5)).await;
            }
            let length = if body.contains("huge") { 500 * 1024 } else { 0 };
            let mut numbers = body.split_whitespace().filter_map(|word| word.parse::<u16>().ok());
            let status = numbers.find(|number| (200..600).contains(number));
            let cookie = body.contains("cookie").then_some(("set-cookie", "session=1"));
            Ok(cookie
                .into_iter()
                .fold(Response::builder(), |response, (name, value)| response.header(name, value))
                .status(StatusCode::from_u16(status.unwrap_or(201)).unwrap())
                .header("x-charge", number.to_string())
                .header("x-failures", failed_attempts.map_or(-1, i64::from))
                .body(Body::from(format!("charge {number}{}", " ".repeat(length))))
                .unwrap())
        })
    }

    /// Sends one request through `layer`.
    pub(crate) async fn send(
        &self,
        layer: &HttpLayer,
        request: Request,
    ) -> Result<Response<Body>, HandlerError<OnFire>> {
        let world = self.clone();
        let handler = service_fn(move |request| world.handle(request));
        let mut service = layer.layer(handler);
        let request = request.with_lambda_context(self.context());
        self.clock.drive(async { service.ready().await?.call(request).await }).await
    }

    /// Sends one request and reads the response, which must not be an error.
    pub(crate) async fn answer(&self, layer: &HttpLayer, request: Request) -> Answer {
        let response = self.send(layer, request).await.unwrap();
        let body = String::from_utf8_lossy(response.body()).into_owned();
        let header = |name| {
            let value = response.headers().get(name);
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        Answer {
            status: response.status().as_u16(),
            charge: header("x-charge"),
            failed_attempts: header("x-failures")
                .map(|failed_attempts| failed_attempts.parse().unwrap()),
            replayed: header("idempotency-replayed").is_some(),
            retry_after: header("retry-after").map(|seconds| seconds.parse().unwrap()),
            problem: (header("content-type").as_deref() == Some("application/problem+json"))
                .then(|| serde_json::from_str(&body).unwrap()),
            body,
        }
    }

    /// A context whose invocation ends in 29 seconds.
    pub(crate) fn context(&self) -> Context {
        let mut context = Context::default();
        context.request_id = "request-1".to_owned();
        context.deadline = self.clock.now().plus(Duration::from_secs(29)).as_millis();
        context
    }
}

/// The response as a client gets it.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The number of the handler's call.
    pub(crate) charge: Option<String>,
    /// The failed attempts of the key before; -1 if the handler got no `Call`.
    pub(crate) failed_attempts: Option<i64>,
    pub(crate) replayed: bool,
    pub(crate) retry_after: Option<u64>,
    pub(crate) problem: Option<Value>,
    pub(crate) body: String,
}

impl Answer {
    /// The kind of the problem.
    pub(crate) fn kind(&self) -> &str {
        let kind = self.problem.as_ref().unwrap()["type"].as_str().unwrap();
        kind.rsplit_once('#').unwrap().1
    }
}

pub(crate) fn charges() -> Operation {
    Operation::new("charges")
}

/// `POST /charges` with a key, from Ann.
pub(crate) fn post(key: &str, body: &str) -> Request {
    request(Method::POST, "/charges", Some(key), body)
}

pub(crate) fn request(method: Method, path: &str, key: Option<&str>, body: &str) -> Request {
    let mut request = lambda_http::http::Request::builder().method(method).uri(path);
    request = request.header("authorization", "Bearer ann");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    request.body(Body::from(body)).unwrap()
}
