//! HTTP requests through API Gateway, Lambda function URLs and load balancers: the
//! `Idempotency-Key` header.
//!
//! ```no_run
//! use lambda_http::{Request, tower::ServiceBuilder, service_fn};
//! use lambda_idempotency::{DynamoDbStore, Idempotency, Operation, http::Http};
//!
//! async fn charge(request: Request) -> Result<String, std::io::Error> {
//!     Ok("charged".to_owned()) // once per key; a repeated request gets this response again
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), lambda_http::Error> {
//!     let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
//!     let charges = idempotency.http(&Operation::new("charges"), Http::by_header())?;
//!     lambda_http::run(ServiceBuilder::new().layer(charges).service(service_fn(charge))).await
//! }
//! ```
//!
//! With axum, the layer goes around one route or around a router:
//!
//! ```
//! use axum::{Extension, Router, routing::post};
//! use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation, http::Http};
//!
//! async fn charge(Extension(call): Extension<Call>) -> String {
//!     format!("charged with {}", call.subkey("charge"))
//! }
//!
//! # fn main() -> Result<(), lambda_idempotency::ConfigError> {
//! let idempotency = Idempotency::new(MemoryStore::new());
//! let charges = idempotency.http(&Operation::new("charges"), Http::by_header())?;
//! let app: Router = Router::new()
//!     .route("/charges", post(charge).layer(charges))
//!     .route("/search", post(async || "is done each time"));
//! // lambda_http::run(app).await
//! # let _ = app;
//! # Ok(())
//! # }
//! ```
//!
//! Responses follow the [draft of the header][draft] and, where the draft leaves a choice, Stripe:
//!
//! | request | answer |
//! |---|---|
//! | the first with its key | the handler's response |
//! | the same again | the same response, with `Idempotency-Replayed: true` |
//! | the same, while the first is processed | 409 with `Retry-After` |
//! | another one with the same key | 422 |
//! | a `POST` or `PATCH` without a key | 400 |
//! | one whose caller is not known | 403; 500 if the cause is the authorizer |
//! | a `GET`, `PUT`, `DELETE`, ... | the handler's response, each time: these methods are idempotent by themselves ([`Http::needs_key`]) |
//! | any, while the store or a kept response is unavailable | 503 with `Retry-After` |
//!
//! The handler finds its [`Call`](crate::Call) among the extensions of the request:
//! `request.extensions().get::<Call>()`.
//!
//! A key counts for one caller. Method, host, path, query and body are its fingerprint. The path is the one that the client
//! sent, whatever the API's routes and stages are; the order of query parameters and the boundary of a `multipart` body have
//! no effect. Bodies that change between attempts in other ways (compressed, encrypted, with the time in them) need
//! [`Operation::fingerprint`](crate::Operation::fingerprint), which compares a part of the body instead of all of it.
//! [`Http::caller`] describes how the caller is determined, and what to set where no default is
//! safe. **A replay does not reach the handler**, nor what the handler verifies: where no authorizer
//! verifies requests, set [`Http::verify`].
//!
//! [draft]: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07

mod builder;
mod caller;
mod inspect;
mod kept;
mod problem;
mod request_key;
mod sameness;
mod service;

use std::{fmt, sync::Arc, time::Duration};

pub use builder::{ByBody, ByHeader, Http};
use lambda_idempotency_core::policy::{Lease, Mode};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_keys::producer::Selector;
pub use problem::HandlerError;
pub use service::HttpService;
use tower_layer::Layer;

use self::builder::{KeyPlace, LayerSettings};
use crate::{
    error::ConfigError,
    idempotency::Idempotency,
    names::Use,
    operation::{Operation, Prepared},
};

/// How long a claim holds its key outside of Lambda, unless it is renewed, which it is while the request is handled: a client
/// that goes away drops its request, and the key is free again this much later. Lambda drops none, and ends an invocation.
const OUTSIDE: Duration = Duration::from_secs(30);

impl Idempotency {
    /// A layer around a service of HTTP requests, which answers a repeated request with the first
    /// response; see [`http`](crate::http). [`Http`] says where the key is: in the
    /// `Idempotency-Key` header, or in the body.
    ///
    /// # Errors
    /// A mistake in the operation; a key of the operation that the layer would not read, or none.
    pub fn http<K>(&self, operation: &Operation, http: Http<K>) -> Result<HttpLayer, ConfigError> {
        let layer = HttpLayer::new(self.engine.clone(), operation, http)?;
        self.allow(layer.operation(), Use::Http)?;
        Ok(layer)
    }
}

/// A layer around an HTTP service; see [`Idempotency::http`](crate::Idempotency::http).
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct HttpLayer(Arc<LayerSettings>);

impl HttpLayer {
    pub(crate) fn new<K>(
        engine: Engine,
        operation: &Operation,
        http: Http<K>,
    ) -> Result<Self, ConfigError> {
        let options = http.options;
        let own_key = match &options.keys {
            KeyPlace::Body { path: Some(path), .. } => Some(operation.with_path(path.clone())),
            _ => None,
        };
        let operation = own_key.as_ref().unwrap_or(operation);
        let operation = operation.prepared()?;
        let mistake = options.mistake.map_or(Ok(()), Err);
        mistake.and_then(|()| options.keys.fit(&operation)).map_err(|problem| {
            let name = &operation.name;
            ConfigError::setting(format!(
                "operation `{name}` cannot have its HTTP layer: {problem}"
            ))
        })?;
        let mut outside = operation.policy.clone();
        if outside.lease == Lease::Invocation {
            outside.lease = Lease::Renewed { length: OUTSIDE };
        }
        Ok(Self(Arc::new(LayerSettings { engine, operation, outside, options })))
    }

    pub(crate) fn operation(&self) -> &Prepared {
        &self.0.operation
    }
}

impl KeyPlace {
    /// Refuses a layer that could not do what it is asked for.
    fn fit(&self, operation: &Prepared) -> Result<(), &'static str> {
        if operation.key.as_ref().is_some_and(Selector::refuses_tenants) {
            return Err(
                "each request would be refused, because Powertools keys cannot contain its caller; \
                        let all callers share their keys with `PowertoolsKeys::accept_collisions`, or \
                        remove `.powertools(..)`",
            );
        }
        match self {
            Self::Header(_) if operation.names_key() => {
                Err("it has a key in the body, which `Http::by_header()` does not read; use \
                 `Http::by_body()`, or remove the operation's `.key(..)`")
            }
            Self::Header(_) if operation.policy.mode == Mode::Mutex => Err(
                "clients choose the key of each request, so it excludes no other request, and in `Mode::Mutex` a \
                 repeated one is handled again; use `Http::by_body()` with the `.key(..)` of what is protected, or \
                 another mode",
            ),
            Self::Body { .. } if !operation.names_key() => {
                Err("`Http::by_body()` needs the place of the key in the body; name it with \
                     `.key(\"...\")`, or use `Http::by_header()`")
            }
            Self::Body { by_path: true, .. } if operation.is_of_powertools() => Err(
                "`.one_key_for_each_path()` has no effect, because Powertools keys cannot contain a \
                 path; remove it, or `.powertools(..)`",
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for HttpLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLayer")
            .field("operation", &self.0.operation.name)
            .field("keys", &self.0.options.keys)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for HttpLayer {
    type Service = HttpService<S>;

    fn layer(&self, inner: S) -> HttpService<S> {
        HttpService::new(inner, Arc::clone(&self.0))
    }
}
