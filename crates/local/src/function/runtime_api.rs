//! Lambda's Runtime API, version 2018-06-01, for one process.
//!
//! Each process has its own endpoint, so that a late answer cannot be mistaken for another process's.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};

use super::invocation::InvocationResult;
use crate::error::Error;
use crate::http::{HangUp, Reply, Server, json};

/// An event on its way to the function.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) request_id: String,
    pub(crate) arn: String,
    pub(crate) deadline_ms: u64,
    pub(crate) event: Bytes,
}

/// A request of the process to its endpoint.
#[derive(Debug)]
pub(crate) enum Said {
    Ready,
    Answer { request_id: String, result: InvocationResult },
    InitError(InvocationResult),
}

/// The endpoint of one process.
#[derive(Debug)]
pub(crate) struct RuntimeApi {
    server: Server,
    pub(crate) work: mpsc::UnboundedSender<Work>,
    pub(crate) said: mpsc::UnboundedReceiver<Said>,
}

struct State {
    work: Mutex<mpsc::UnboundedReceiver<Work>>,
    said: mpsc::UnboundedSender<Said>,
}

impl RuntimeApi {
    pub(crate) async fn start() -> Result<Self, Error> {
        let (work, queue) = mpsc::unbounded_channel();
        let (speak, said) = mpsc::unbounded_channel();
        let state = Arc::new(State { work: Mutex::new(queue), said: speak });
        let server = Server::start(move |request| answer(Arc::clone(&state), request)).await?;
        Ok(Self { server, work, said })
    }

    /// The value of `AWS_LAMBDA_RUNTIME_API`.
    pub(crate) fn address(&self) -> String {
        self.server.address().to_string()
    }
}

/// The most bytes of a response, as Lambda's own error says.
const LARGEST_RESPONSE: usize = 6_291_556;

/// The result of an invocation whose response has more.
fn too_large() -> InvocationResult {
    InvocationResult::FunctionError {
        kind: "Function.ResponseSizeTooLarge".to_owned(),
        message: format!(
            "Response payload size exceeded maximum allowed payload size ({LARGEST_RESPONSE} bytes)."
        ),
    }
}

async fn answer(state: Arc<State>, request: Request<Bytes>) -> Result<Reply, HangUp> {
    let path = request.uri().path().trim_start_matches("/2018-06-01/runtime/").to_owned();
    let steps: Vec<&str> = path.split('/').collect();
    let kind = request
        .headers()
        .get("lambda-runtime-function-error-type")
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("Unhandled")
        .to_owned();
    let said = match (request.method(), steps.as_slice()) {
        (&Method::GET, ["invocation", "next"]) => return next(&state).await,
        (&Method::POST, ["invocation", request_id, "response"]) => {
            Said::Answer { request_id: (*request_id).to_owned(), result: response(request.body()) }
        }
        (&Method::POST, ["invocation", request_id, "error"]) => Said::Answer {
            request_id: (*request_id).to_owned(),
            result: error(&kind, request.body()),
        },
        (&Method::POST, ["init", "error"]) => Said::InitError(error(&kind, request.body())),
        _ => {
            return Ok(json(
                StatusCode::NOT_FOUND,
                r#"{"errorType":"NotFound","errorMessage":"no such path"}"#,
            ));
        }
    };
    let is_too_large = matches!(&said, Said::Answer { result, .. } if *result == too_large());
    let _ = state.said.send(said);
    Ok(match is_too_large {
        true => json(StatusCode::PAYLOAD_TOO_LARGE, r#"{"errorType":"RequestEntityTooLarge"}"#),
        false => json(StatusCode::ACCEPTED, r#"{"status":"OK"}"#),
    })
}

/// Waits without a limit for the next event.
async fn next(state: &State) -> Result<Reply, HangUp> {
    state.said.send(Said::Ready).map_err(|_| HangUp)?;
    let work = state.work.lock().await.recv().await.ok_or(HangUp)?;
    Response::builder()
        .header("content-type", "application/json")
        .header("lambda-runtime-aws-request-id", &work.request_id)
        .header("lambda-runtime-deadline-ms", work.deadline_ms)
        .header("lambda-runtime-invoked-function-arn", work.arn)
        .header("lambda-runtime-trace-id", trace_id(&work.request_id))
        .body(work.event.into())
        .map_err(|_| HangUp)
}

/// An X-Ray header, not sampled, derived from the request id.
fn trace_id(request_id: &str) -> String {
    let hex: String = request_id.chars().filter(char::is_ascii_hexdigit).collect();
    let (time, rest) = hex.split_at_checked(8).unwrap_or((&hex, ""));
    format!("Root=1-{time}-{rest:0<24};Sampled=0")
}

fn response(body: &Bytes) -> InvocationResult {
    if body.len() > LARGEST_RESPONSE {
        return too_large();
    }
    if body.is_empty() {
        return InvocationResult::Response(Value::Null);
    }
    serde_json::from_slice(body).map_or_else(
        |_| InvocationResult::NotJson(String::from_utf8_lossy(body).into_owned()),
        InvocationResult::Response,
    )
}

fn error(kind: &str, body: &Bytes) -> InvocationResult {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let field = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    InvocationResult::FunctionError {
        kind: field("errorType").unwrap_or_else(|| kind.to_owned()),
        message: field("errorMessage").unwrap_or_default(),
    }
}
