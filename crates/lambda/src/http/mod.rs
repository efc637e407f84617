//! HTTP requests through API Gateway, Lambda function URLs and load balancers: the
//! `Idempotency-Key` header.
//!
//! ```no_run
//! use lambda_http::{Request, tower::ServiceBuilder, service_fn};
//! use lambda_idempotency::{DynamoDbStore, Idempotency, Operation};
//!
//! async fn charge(request: Request) -> Result<String, std::io::Error> {
//!     Ok("charged".to_owned()) // once per key; sent again to whoever asks again
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), lambda_http::Error> {
//!     let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
//!     let charges = idempotency.http(&Operation::new("charges"))?;
//!     lambda_http::run(ServiceBuilder::new().layer(charges).service(service_fn(charge))).await
//! }
//! ```
//!
//! What clients see follows the [draft of the header][draft] and, where that leaves it open, Stripe:
//!
//! | request | answer |
//! |---|---|
//! | the first with its key | the handler's response |
//! | the same again | the same response, with `Idempotency-Replayed: true` |
//! | the same, while the first is processed | 409 with `Retry-After` |
//! | another one with the same key | 422 |
//! | a `POST` or `PATCH` without a key | 400 |
//! | a `GET`, `PUT`, `DELETE`, ... | passes by: these methods are idempotent by themselves |
//! | any, while the store is out of reach | 503 with `Retry-After` |
//!
//! The handler finds its [`Call`](crate::Call) among the extensions of the request:
//! `request.extensions().get::<Call>()`.
//!
//! A key counts for one caller, one method and one route. The rest of the request (path, query, body)
//! is its fingerprint.
//!
//! [draft]: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07

mod caller;
mod header;
mod inspect;
mod kept;
mod problem;
mod service;

pub use service::HttpService;

use std::{fmt, sync::Arc};

use lambda_http::{
    Request,
    http::{HeaderName, Method, StatusCode},
};
use lambda_idempotency_core::batch::Engine;
use tower_layer::Layer;

use crate::{
    error::ConfigError,
    operation::{Operation, Place, Prepared},
};

/// A layer around an HTTP service; see [`Idempotency::http`](crate::Idempotency::http).
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct HttpLayer(Arc<Settings>);

#[derive(Clone)]
struct Settings {
    engine: Engine,
    operation: Arc<Prepared>,
    header: HeaderName,
    methods: Vec<Method>,
    keeps: Arc<Keeps>,
    caller: Arc<Caller>,
}

type Keeps = dyn Fn(StatusCode) -> bool + Send + Sync;
type Caller = dyn Fn(&Request) -> Option<String> + Send + Sync;

impl HttpLayer {
    pub(crate) fn new(engine: Engine, operation: &Operation) -> Result<Self, ConfigError> {
        let prepared = operation.prepared()?;
        operation.fits(Place::Http)?;
        Ok(Self(Arc::new(Settings {
            engine,
            operation: prepared,
            header: HeaderName::from_static("idempotency-key"),
            methods: vec![Method::POST, Method::PATCH],
            keeps: Arc::new(kept::comes_of_the_work),
            caller: Arc::new(caller::caller),
        })))
    }

    /// Takes the key from another header.
    pub fn header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.header = name)
    }

    /// The methods that are deduplicated. Default: `POST` and `PATCH`.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|settings| settings.methods = methods.into_iter().collect())
    }

    /// Which responses answer later requests; the others release their key. Default: all but those
    /// with which a handler turns a request away before it begins (400, 401, 403, 404, 405, 406, 408,
    /// 409, 412, 413, 415, 422, 425, 428, 429, 431). Errors of the server are kept, as Stripe does:
    /// who cannot tell how far the work came must not begin it again.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// // Handlers that undo what they began before they answer with 5xx:
    /// let charges =
    ///     idempotency.http(&Operation::new("charges"))?.keep(|status| status.is_success());
    /// # let _ = charges;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep(self, keeps: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.keeps = Arc::new(keeps))
    }

    /// Who asks: a text that stays the same for a caller and differs between callers. Default: the
    /// subject of the token or the identity that the authorizer found; where there is no authorizer,
    /// the `Authorization` header or `x-api-key` as it was sent. **Name it yourself where clients
    /// renew their token between attempts and no authorizer reads it**: with another token, a second
    /// attempt would count as another caller's.
    pub fn caller(
        self,
        caller: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.caller = Arc::new(caller))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl fmt::Debug for HttpLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLayer")
            .field("operation", &self.0.operation.name)
            .field("header", &self.0.header)
            .field("methods", &self.0.methods)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for HttpLayer {
    type Service = HttpService<S>;

    fn layer(&self, inner: S) -> HttpService<S> {
        HttpService::new(inner, Arc::clone(&self.0))
    }
}
