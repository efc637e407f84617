//! Processes one request: key, claim, handler, response.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures_util::FutureExt as _;
use lambda_http::{
    Body, IntoResponse, Request, RequestExt as _,
    http::{HeaderMap, Response},
};
use lambda_idempotency_core::{clock::BoxFuture, failure::Failure, outcome::Outcome};
use lambda_idempotency_engine::batch::{AfterFailure, Batch, Delivery, Job, Returned, Work};
use tower_service::Service;

use super::{
    body::WholeBody,
    kept::{Cookies, replay, to_json},
    problem::Problem,
    request_key::{Compared, RequestKey, text},
    settings::{Amends, Settings},
};
use crate::{
    call::Invoked,
    error::{InvocationError, ResultLost, RunError},
    find_key::Extraction,
    function::invocation_deadline,
};

/// A service that handles each request once per key, and answers later ones with the first
/// response.
#[derive(Clone)]
pub struct HttpService<S> {
    inner: S,
    settings: Arc<Settings>,
}

/// The handler's response, which does not go through the engine.
type Slot = Arc<Mutex<Option<Response<Body>>>>;

impl<S> HttpService<S> {
    pub(super) const fn new(inner: S, settings: Arc<Settings>) -> Self {
        Self { inner, settings }
    }
}

impl<S> Service<Request> for HttpService<S>
where
    S: Service<Request> + Clone + Send + 'static,
    S::Response: IntoResponse + Send,
    S::Error: Into<Failure> + Send,
    S::Future: Send,
{
    type Response = Response<WholeBody>;
    type Error = InvocationError;
    type Future = BoxFuture<'static, Result<Self::Response, InvocationError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), InvocationError>> {
        self.inner.poll_ready(context).map_err(|error| failed(error.into()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // Call the instance that `poll_ready` was called on; its clone may not be ready.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let settings = Arc::clone(&self.settings);
        Box::pin(async move {
            if !settings.methods.contains(request.method()) {
                let response = inner.call(request).await.map_err(|error| failed(error.into()))?;
                return Ok(response.into_response().await.map(WholeBody::from));
            }
            settings.answer(inner, request).await.map(|response| response.map(WholeBody::from))
        })
    }
}

/// The response as the hook has changed it; unchanged if the hook panics.
fn amended(
    response: Response<Body>,
    hook: Option<&Amends>,
    headers: Option<&HeaderMap>,
) -> Response<Body> {
    let Some((hook, headers)) = hook.zip(headers) else { return response };
    let mut changed = response.clone();
    match catch_unwind(AssertUnwindSafe(|| hook(headers, &mut changed))) {
        Ok(()) => changed,
        Err(_) => response,
    }
}

fn failed(failure: Failure) -> InvocationError {
    InvocationError::Run(RunError::Failed(failure))
}

impl Settings {
    async fn answer<S>(&self, inner: S, request: Request) -> Result<Response<Body>, InvocationError>
    where
        S: Service<Request> + Send + 'static,
        S::Response: IntoResponse + Send,
        S::Error: Into<Failure> + Send,
        S::Future: Send,
    {
        let context = request.lambda_context_ref();
        let invocation_deadline = context.and_then(invocation_deadline);
        let request_id = context.map(|context| context.request_id.clone());
        // The handler consumes the request, but the hooks need its headers afterwards.
        let hooked = self.amends.is_some() || self.on_replay.is_some();
        let headers = hooked.then(|| request.headers().clone());
        let problem = |problem: Problem| {
            amended(problem.into_response(), self.amends.as_deref(), headers.as_ref())
        };
        let request_key = match self.request_key(&request) {
            Ok(request_key) => request_key,
            Err(refused) => return Ok(problem(refused)),
        };
        // A copy, because the handler consumes the request; only if an expression reads the body.
        let reads_body = self.operation.names_key() || self.operation.fingerprint.is_some();
        let body = if reads_body { request.body().clone() } else { Body::Empty };
        let body = text(&body);
        let slot = Slot::default();
        let invoked = request.lambda_context_ref().cloned().map(Invoked::without_event);
        let delivered = invoked.map(Invoked::without_record).unwrap_or_default();
        let work =
            self.work(&request_key, body, self.job(inner, request, &slot, request_key.cookies));
        let record = request_key.id.clone();
        let batch = Batch {
            operation: &self.operation.name,
            deliveries: vec![Delivery {
                record,
                delivered,
                group: None,
                receives: 0,
                work,
                divert: None,
            }],
            after_failure: AfterFailure::Group,
            policy: &self.operation.policy,
            request_id: request_id.as_deref(),
            invocation_deadline,
            pace: &self.operation.pace,
        };
        let outcome = self.engine.run(batch).await.pop();
        let response = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let replayed = |response| amended(response, self.on_replay.as_deref(), headers.as_ref());
        self.respond(outcome, response, problem, replayed)
    }

    /// The handler's call. The response goes into `slot`, and the engine gets only the JSON to
    /// keep.
    fn job<'j, S>(
        &self,
        mut inner: S,
        mut request: Request,
        slot: &Slot,
        cookies: Cookies,
    ) -> Job<'j>
    where
        S: Service<Request> + Send + 'static,
        S::Response: IntoResponse + Send,
        S::Error: Into<Failure> + Send,
        S::Future: Send,
    {
        let (slot, keeps) = (Arc::clone(slot), Arc::clone(&self.keeps));
        Box::new(move |call| {
            Box::pin(async move {
                request.extensions_mut().insert(call);
                let response = inner.call(request).await.map_err(Into::into)?;
                // The work is done. The user's code after this point may panic, which must not
                // cause a retry.
                let response = async { response.into_response().await };
                let Ok(response) = AssertUnwindSafe(response).catch_unwind().await else {
                    return Ok(Returned::Unserializable);
                };
                let is_kept = catch_unwind(AssertUnwindSafe(|| keeps(response.status())));
                let kept = is_kept.unwrap_or(true).then(|| to_json(&response, cookies));
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
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

    fn work<'w>(&self, request_key: &'w RequestKey, body: &'w str, job: Job<'w>) -> Work<'w> {
        let extraction =
            Extraction { operation: &self.operation, tenant: Some(&request_key.scope) };
        let Some(texts) = self.texts(request_key, body) else {
            let content = match &request_key.fingerprint {
                Compared::Whole(whole) => whole.as_str().to_owned(),
                Compared::Selection { target } => format!("{target} {body}"),
            };
            return Work::Unprotected {
                identity: extraction.without_key(&request_key.id, &content),
                job,
            };
        };
        let mut work = extraction.work(&request_key.id, texts, |_| Ok(job));
        if let Work::Keyed { fingerprint, .. } = &mut work {
            *fingerprint = Some(self.fingerprint(request_key, fingerprint.take()));
        }
        work
    }

    fn respond(
        &self,
        outcome: Option<Outcome>,
        response: Option<Response<Body>>,
        problem: impl Fn(Problem) -> Response<Body>,
        replayed: impl Fn(Response<Body>) -> Response<Body>,
    ) -> Result<Response<Body>, InvocationError> {
        let Some(outcome) = outcome else { return Err(RunError::OutOfTime.into()) };
        if let Some(found) = Problem::of(&outcome, self.engine.clock().now()) {
            return Ok(problem(found));
        }
        match (outcome, response) {
            (
                Outcome::Replayed { result, .. }
                | Outcome::Superseded { result, .. }
                | Outcome::Coalesced { result, .. },
                _,
            ) => {
                let again = result.as_deref().and_then(replay);
                Ok(again.map_or_else(|| problem(Problem::lost()), replayed))
            }
            // The handler may have responded, and an effect was refused: nothing of it was done.
            (Outcome::Failed { failure, .. }, _) => Err(failed(failure)),
            (_, Some(response)) => Ok(response),
            // The conversion of the response panicked.
            (Outcome::Executed { .. }, None) => Ok(problem(Problem::lost())),
            (_, None) => Err(RunError::ResultLost(ResultLost::Unknown).into()),
        }
    }
}
