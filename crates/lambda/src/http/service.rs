//! Processes one request: key, claim, handler, response.

use std::{
    any::Any,
    fmt,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use lambda_http::{
    Body, IntoResponse, Request, RequestExt as _,
    http::{self, HeaderValue, Response, StatusCode, header::CONTENT_TYPE},
    request::RequestContext,
};
use lambda_idempotency_core::{clock::BoxFuture, contained::caught, outcome::Outcome};
use lambda_idempotency_engine::batch::{Batch, Delivery, Job, Returned, Work};
use tower_service::Service;

use super::{
    builder::LayerSettings,
    caller::UnknownCaller,
    kept::{Cookies, replay, to_json},
    problem::{self, HandlerError, Problem},
    request_key::{Compared, RequestKey, of_body, text},
};
use crate::{
    call::{Invoked, Read, invocation_deadline},
    find_key::Extraction,
    handler::Bypass,
    rejection::Rejection,
};

/// A service that handles each request once per key, and answers later ones with the first
/// response.
///
/// It goes around each service whose requests have a body that can be made of bytes: those of
/// `lambda_http`, axum (a router, a route) and hyper (`Full<Bytes>`). The body of its responses has
/// the same type. A request that needs a key is read whole, and so is its response, which is kept
/// before it is sent; the others pass as they are. The size of bodies is not limited: Lambda limits
/// it.
#[derive(Clone)]
pub struct HttpService<S> {
    inner: S,
    settings: Arc<LayerSettings>,
}

/// The response of the service.
type Returning<E> = Bypass<Result<Response<Body>, HandlerError<E>>>;

impl<S> HttpService<S> {
    pub(super) const fn new(inner: S, settings: Arc<LayerSettings>) -> Self {
        Self { inner, settings }
    }
}

impl<S, B> Service<http::Request<B>> for HttpService<S>
where
    S: Service<http::Request<B>> + Clone + Send + 'static,
    S::Response: IntoResponse + Send + 'static,
    S::Error: fmt::Display + Send + 'static,
    S::Future: Send,
    B: http_body::Body + From<Vec<u8>> + Send + 'static,
    B::Data: Send,
{
    type Response = Response<B>;
    type Error = HandlerError<S::Error>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(HandlerError::new)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        // Call the instance that `poll_ready` was called on; its clone may not be ready.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let settings = Arc::clone(&self.settings);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let web_socket = web_socket(&parts.extensions);
            if web_socket == Some("MESSAGE") {
                let refused = settings.unknown(&UnknownCaller::WebSocket);
                return Ok(refused.into_response().map(given_on));
            }
            let needs_key = web_socket.is_none() && settings.options.needs_key(&parts);
            let request = http::Request::from_parts(parts, body);
            if needs_key {
                return Ok(settings.answer(inner, request).await?.map(given_on));
            }
            let response = inner.call(request).await.map_err(HandlerError::new)?;
            let passed = passed_on(response).await;
            Ok(passed
                .unwrap_or_else(|| Problem::new(&problem::UNREAD).into_response().map(given_on)))
        })
    }
}

/// The type of a WebSocket API's event: a message, or that a client connects or disconnects.
fn web_socket(extensions: &http::Extensions) -> Option<&str> {
    match extensions.get::<RequestContext>()? {
        RequestContext::WebSocket(context) => {
            Some(context.event_type.as_deref().unwrap_or("MESSAGE"))
        }
        _ => None,
    }
}

impl LayerSettings {
    async fn answer<S, B>(
        &self,
        inner: S,
        request: http::Request<B>,
    ) -> Result<Response<Body>, HandlerError<S::Error>>
    where
        S: Service<http::Request<B>> + Send + 'static,
        S::Response: IntoResponse + Send + 'static,
        S::Error: fmt::Display + Send + 'static,
        S::Future: Send,
        B: http_body::Body + From<Vec<u8>> + Send + 'static,
        B::Data: Send,
    {
        let Some(request) = whole_request(request).await else {
            return Ok(Problem::new(&problem::BODY).into_response());
        };
        match self.verified(&request).await {
            Ok(Ok(())) => {}
            Ok(Err(refused)) => return Ok(refused),
            Err(panicked) => return Ok(panicked.into_response()),
        }
        let context = request.lambda_context_ref();
        let now = self.engine.clock().now();
        let invocation_deadline =
            context.and_then(|context| invocation_deadline(context, now, Read::AtStart));
        let request_id = context.map(|context| context.request_id.clone());
        let is_invoked = context.is_some();
        let request_key = match self.request_key(&request) {
            Ok(request_key) => request_key,
            Err(refused) => return Ok(refused.into_response()),
        };
        // A copy, because the handler consumes the request; only if an expression reads the body.
        let reads_body = self.operation.names_key() || self.operation.fingerprint.is_some();
        let body = if reads_body { request.body().clone() } else { Body::Empty };
        let returning = Returning::default();
        let invoked = context.cloned().map(Invoked::without_event);
        let delivered = invoked.map(Invoked::without_record).unwrap_or_default();
        let cookies = request_key.cookies;
        let work =
            self.work(&request_key, &body, self.job(inner, request, returning.clone(), cookies));
        let policy = if is_invoked { &self.operation.policy } else { &self.outside };
        let batch = Batch::for_operation(&self.operation.name, policy, &self.operation.pace)
            .within(request_id.as_deref(), invocation_deadline)
            .with(vec![Delivery::alone(request_key.id.clone(), delivered, work)]);
        let outcome = self.engine.run(batch).await.pop();
        self.respond(outcome, returning.take(), cookies)
    }

    /// Calls the user's hook. The inner error is the user's answer, the outer one is for a panic.
    async fn verified(&self, request: &Request) -> Result<Result<(), Response<Body>>, Problem> {
        let Some(verify) = self.options.verify.as_deref() else { return Ok(Ok(())) };
        let verified = async { verify(request.clone()).await };
        AssertUnwindSafe(verified)
            .catch_unwind()
            .await
            .map_err(|_| self.unknown(&UnknownCaller::VerifyPanicked))
    }

    /// The handler's call. Its response goes into `returning`, and the engine gets only the JSON to
    /// keep.
    fn job<'j, S, B>(
        &self,
        mut inner: S,
        request: Request,
        returning: Returning<S::Error>,
        cookies: Cookies,
    ) -> Job<'j>
    where
        S: Service<http::Request<B>> + Send + 'static,
        S::Response: IntoResponse + Send + 'static,
        S::Error: fmt::Display + Send + 'static,
        S::Future: Send,
        B: http_body::Body + From<Vec<u8>> + Send + 'static,
        B::Data: Send,
    {
        let keeps = Arc::clone(&self.options.keeps);
        let not_replayed = self.options.not_replayed.clone();
        Box::new(move |call| {
            Box::pin(async move {
                let mut request = request.map(given_on::<B>);
                request.extensions_mut().insert(call);
                let response = match inner.call(request).await {
                    Ok(response) => response,
                    Err(error) => {
                        let error = HandlerError::new(error);
                        let failure = error.failure();
                        returning.put(Err(error));
                        return Err(failure);
                    }
                };
                // The work is done. The user's code after this point may panic, which must not
                // cause a retry.
                let response = AssertUnwindSafe(whole_response::<_, B>(response)).catch_unwind();
                let is_kept = |status| caught(|| keeps(status)).unwrap_or(true);
                let response = match response.await {
                    Ok(Ok(response)) => response,
                    Ok(Err(status)) if !is_kept(status) => return Ok(Returned::Declined),
                    _ => return Ok(Returned::Unserializable),
                };
                let kept =
                    is_kept(response.status()).then(|| to_json(&response, cookies, &not_replayed));
                returning.put(Ok(response));
                match kept {
                    None => Ok(Returned::Declined),
                    Some(json) => {
                        Ok(json
                            .map_or(Returned::Unserializable, |json| Returned::Value(json.into())))
                    }
                }
            })
        })
    }

    fn work<'w>(&self, request_key: &'w RequestKey, body: &'w Body, job: Job<'w>) -> Work<'w> {
        let extraction =
            Extraction { operation: &self.operation, tenant: Some(&request_key.scope) };
        let text = match text(body) {
            Ok(text) => text,
            Err(rejection) => return Work::Reject(rejection.into()),
        };
        let Some(texts) = self.texts(request_key, text) else {
            let content = match &request_key.fingerprint {
                Compared::Whole(whole) => whole.as_str().to_owned(),
                Compared::Selection { target } => format!("{target} {text}"),
            };
            return Work::Unprotected {
                identity: extraction.without_key(&request_key.id, &content),
                job,
            };
        };
        let mut work = extraction.work(&request_key.id, texts, |_| Ok(job));
        match &mut work {
            Work::Keyed { fingerprint, .. } => {
                *fingerprint = Some(self.fingerprint(request_key, fingerprint.take()));
            }
            Work::Reject(rejected) => {
                *rejected = of_body(Rejection::from(rejected.clone())).into();
            }
            _ => {}
        }
        work
    }

    fn respond<E>(
        &self,
        outcome: Option<Outcome>,
        returned: Option<Result<Response<Body>, HandlerError<E>>>,
        cookies: Cookies,
    ) -> Result<Response<Body>, HandlerError<E>> {
        let Some(outcome) = outcome else {
            return Ok(Problem::new(&problem::NO_TIME).into_response());
        };
        if let Some(found) = Problem::of(&outcome, self.engine.clock().now()) {
            return Ok(found.into_response());
        }
        let completion = outcome.completion();
        match (outcome, returned) {
            (
                Outcome::Replayed { result, .. }
                | Outcome::Superseded { result, .. }
                | Outcome::Coalesced { result, .. },
                _,
            ) => {
                let again = result
                    .as_deref()
                    .and_then(|json| replay(json, cookies, &self.options.not_replayed));
                let Some(mut again) = again else {
                    return Ok(Problem::new(&problem::LOST).into_response());
                };
                // For a layer around this one.
                if let Some(completion) = completion {
                    again.extensions_mut().insert(completion);
                }
                Ok(again)
            }
            (_, Some(Err(error))) => Err(error),
            // The handler panicked. Or it responded, and one of its effects was refused: nothing of
            // what the response says was done.
            (Outcome::Failed { permanent, .. }, _) => {
                let kind = if permanent { &problem::FAILED_FOR_EVER } else { &problem::FAILED };
                Ok(Problem::new(kind).into_response())
            }
            (_, Some(Ok(response))) => Ok(response),
            // The response could not be read, and none is kept.
            (Outcome::Declined, None) => Ok(Problem::new(&problem::FAILED).into_response()),
            (_, None) => Ok(Problem::new(&problem::UNREAD).into_response()),
        }
    }
}

/// The value, if its type is the other one.
fn same<T: 'static, U: 'static>(value: &mut Option<T>) -> Option<U> {
    let value: &mut dyn Any = value;
    value.downcast_mut::<Option<U>>()?.take()
}

/// All bytes of a body; `None` if it ends with an error. A body of `lambda_http` stays as it is.
async fn whole<B>(body: B) -> Option<Body>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    let mut body = Some(body);
    if let Some(read) = same::<B, Body>(&mut body) {
        return Some(read);
    }
    let bytes = Vec::from(body?.collect().await.ok()?.to_bytes());
    Some(match String::from_utf8(bytes) {
        Ok(text) if text.is_empty() => Body::Empty,
        Ok(text) => Body::Text(text),
        Err(binary) => Body::Binary(binary.into_bytes()),
    })
}

/// The body in another type. A body of `lambda_http` stays as it is.
fn given_on<B: From<Vec<u8>> + 'static>(body: Body) -> B {
    let mut body = Some(body);
    same::<Body, B>(&mut body).unwrap_or_else(|| {
        B::from(match body {
            Some(Body::Text(text)) => text.into_bytes(),
            Some(Body::Binary(bytes)) => bytes,
            _ => Vec::new(),
        })
    })
}

/// A request whose body was read; `None` if the body ends with an error.
async fn whole_request<B>(request: http::Request<B>) -> Option<Request>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    let (parts, body) = request.into_parts();
    Some(http::Request::from_parts(parts, whole(body).await?))
}

/// A response whose body was read; its status if the body ends with an error. A response with a body of
/// type `B` is read as it is, because `lambda_http` would decode its text.
async fn whole_response<R, B>(response: R) -> Result<Response<Body>, StatusCode>
where
    R: IntoResponse + Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    let mut response = Some(response);
    match same::<R, Response<B>>(&mut response) {
        Some(own) => {
            let (parts, body) = own.into_parts();
            let body = whole(body).await.ok_or(parts.status)?;
            Ok(Response::from_parts(parts, body))
        }
        // `same` takes it only if it has this type.
        None => {
            Ok(converted(response.ok_or(StatusCode::INTERNAL_SERVER_ERROR)?.into_response().await))
        }
    }
}

/// A response that `lambda_http` has converted: the text of its body is UTF-8 then, whatever the service wrote, and is not to be
/// decoded once more.
fn converted(mut response: Response<Body>) -> Response<Body> {
    let (Body::Text(_), Some(content_type)) =
        (response.body(), response.headers().get(CONTENT_TYPE))
    else {
        return response;
    };
    let mut parts = content_type.to_str().unwrap_or_default().split(';');
    let mut new = parts.next().unwrap_or_default().trim().to_owned();
    let mut is_decoded = false;
    for parameter in parts {
        let name = parameter.split('=').next().unwrap_or_default().trim();
        let is_charset = name.eq_ignore_ascii_case("charset");
        is_decoded |= is_charset;
        let parameter = if is_charset { "charset=utf-8" } else { parameter.trim() };
        new = format!("{new}; {parameter}");
    }
    if is_decoded && let Ok(new) = HeaderValue::try_from(new) {
        response.headers_mut().insert(CONTENT_TYPE, new);
    }
    response
}

/// The response to a request that needs no key. A body of type `B` is not read, because it may be a
/// stream.
async fn passed_on<R, B>(response: R) -> Option<Response<B>>
where
    R: IntoResponse + Send + 'static,
    B: From<Vec<u8>> + Send + 'static,
{
    let mut response = Some(response);
    match same::<R, Response<B>>(&mut response) {
        Some(own) => Some(own),
        None => Some(converted(response?.into_response().await).map(given_on)),
    }
}
