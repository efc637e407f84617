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
//! | one whose caller is not known | 403; 500 if the authorizer is to blame |
//! | a `GET`, `PUT`, `DELETE`, ... | passes by: these methods are idempotent by themselves |
//! | any, while the store is out of reach | 503 with `Retry-After` |
//!
//! The handler finds its [`Call`](crate::Call) among the extensions of the request:
//! `request.extensions().get::<Call>()`.
//!
//! A key counts for one caller. What was asked for (method, host, path, query, body) is its fingerprint. Who the caller is, and what to say where no default is safe, is with
//! [`HttpLayer::caller`].
//!
//! [draft]: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07

mod body;
mod caller;
mod header;
mod inspect;
mod kept;
mod multipart;
mod problem;
mod sameness;
mod service;
mod settings;

pub use body::{StreamingIsNotSupported, WholeBody};
pub use service::HttpService;

use std::{fmt, sync::Arc};

use lambda_http::{
    Body, Request,
    http::{HeaderMap, HeaderName, Method, Response, StatusCode},
};
use lambda_idempotency_engine::batch::Engine;
use tower_layer::Layer;

use self::{caller::Callers, settings::Settings};
use crate::{
    error::ConfigError,
    operation::{Operation, Place},
};

/// A layer around an HTTP service; see [`Idempotency::http`](crate::Idempotency::http).
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct HttpLayer(Arc<Settings>);

impl HttpLayer {
    pub(crate) fn new(engine: Engine, operation: &Operation) -> Result<Self, ConfigError> {
        let prepared = operation.prepared()?;
        operation.fits(Place::Http)?;
        if let Some(what) = prepared.sees_record() {
            return Err(ConfigError::NoRecord { operation: Arc::clone(&prepared.name), what });
        }
        Ok(Self(Arc::new(Settings {
            engine,
            operation: prepared,
            header: HeaderName::from_static("idempotency-key"),
            methods: vec![Method::POST, Method::PATCH],
            keeps: Arc::new(kept::comes_of_the_work),
            callers: Callers::Known,
            by_path: false,
            amends: None,
        })))
    }

    /// Takes the key from another header.
    ///
    /// # Errors
    /// The operation takes its key from the body, by `Operation::key(..)` or as Powertools does: no header is looked
    /// at.
    pub fn header(self, name: HeaderName) -> Result<Self, ConfigError> {
        if self.0.operation.names_key() {
            let why = "the operation takes its key from the body";
            return Err(self.useless("header", why, "remove it, or the operation's `.key(..)`"));
        }
        Ok(self.with(|settings| settings.header = name))
    }

    /// Gives each path keys of its own, for keys from the body that mean something in their path only: the
    /// `sku` in `POST /carts/1/items` and in `POST /carts/2/items`. Default: a key that comes with another
    /// path is answered with a 422.
    ///
    /// The path is that which the client sent, with the stage or the base path of a custom domain if it had
    /// one; which route it takes does not count. **A client that sends its second attempt by another path
    /// to the same work has it done again**, as by a custom domain's base path after the API's own stage.
    /// Say it from the start: keys of before are not found afterwards.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let items = Operation::new("items").key("sku");
    /// let items = idempotency.http(&items)?.one_key_for_each_path()?;
    /// # let _ = items;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The operation does not take its key from the body by `Operation::key(..)`: a client that chooses its
    /// keys chooses another for another path, and keys of Powertools have no place for one.
    pub fn one_key_for_each_path(self) -> Result<Self, ConfigError> {
        let (why, remedy) = if self.0.operation.powertools.is_some() {
            ("keys of Powertools have no place for a path", "remove it, or `.powertools(..)`")
        } else if !self.0.operation.names_key() {
            (
                "clients choose the keys in the header, and choose another for another path",
                "remove it, or take the key from the body with the operation's `.key(..)`",
            )
        } else {
            return Ok(self.with(|settings| settings.by_path = true));
        };
        Err(self.useless("one_key_for_each_path", why, remedy))
    }

    /// The methods that are deduplicated. Default: `POST` and `PATCH`.
    ///
    /// # Errors
    /// There are none, so that every request would pass by.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Result<Self, ConfigError> {
        let methods: Vec<Method> = methods.into_iter().collect();
        if methods.is_empty() {
            let why = "it names no method, and every request would pass by";
            return Err(self.useless("methods", why, "name one, or leave the layer out"));
        }
        Ok(self.with(|settings| settings.methods = methods))
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

    /// Who asks: a text that stays the same for a caller and differs between callers. `None` or an empty
    /// text means that it is not known, and the request is refused with a 403.
    ///
    /// Default: what the front door verified (the identity id of a Cognito identity pool, `iss` and `sub`
    /// of a token, the `principalId` of a Lambda authorizer, the IAM user or role), else the
    /// `Authorization` header as it was sent; a request with none of these is refused. **Name the caller
    /// yourself** where sessions are in cookies, where an authorizer names nobody, where people share an
    /// IAM role, where CloudFront signs for its viewers, and where clients renew their token between attempts and no authorizer reads it: with
    /// another token, a second attempt would count as another caller's.
    ///
    /// What it returns must be verified, since whoever can choose it gets another's responses.
    ///
    /// ```
    /// use lambda_http::{Request, RequestExt as _, request::RequestContext};
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// /// A Lambda authorizer of an HTTP API puts the user into its context.
    /// fn user(request: &Request) -> Option<String> {
    ///     let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
    ///         return None;
    ///     };
    ///     let authorizer = context.authorizer.as_ref()?;
    ///     Some(authorizer.fields.get("userId")?.as_str()?.to_owned())
    /// }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let charges = idempotency.http(&Operation::new("charges"))?.caller(user);
    /// # let _ = charges;
    /// # Ok(())
    /// # }
    /// ```
    pub fn caller(
        self,
        caller: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.callers = Callers::Said(Arc::new(caller)))
    }

    /// Who asks is in this header, as a text or a credential that belongs to one caller. A request that
    /// does not have it once, and not empty, is refused with a 403.
    ///
    /// **Only for headers that a client cannot choose freely**: credentials that the function or its front
    /// door verifies, and what a front door sets on each request. `x-api-key` is one only if each caller
    /// has a key of its own. `x-amzn-oidc-identity` is believed from load balancers alone, and only sound
    /// where *every* rule that leads to the function authenticates: a load balancer overwrites the header
    /// where it authenticates, and passes on a client's own where it does not. To be sure, verify the
    /// signature of `x-amzn-oidc-data` in [`caller`](Self::caller).
    pub fn caller_from_header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.callers = Callers::Header(name))
    }

    /// Takes all callers for one: for open APIs, and where nobody is to be told apart. **Whoever sends the
    /// key of another gets the response of that**, so clients need keys that cannot be guessed. Cookies
    /// that the first response set are not set by its replays.
    pub fn all_callers_are_one(self) -> Self {
        self.with(|settings| settings.callers = Callers::One)
    }

    /// Amends the problems that clients get in place of the handler's response, given the headers of the
    /// request: for CORS, or a format of your own. The handler's responses and their replays do not pass
    /// here. A layer *around* this one (tower-http's `CorsLayer`) amends all of them.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// use lambda_http::http::{HeaderValue, header::ACCESS_CONTROL_ALLOW_ORIGIN};
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let charges = idempotency.http(&Operation::new("charges"))?.amend_problems(|_, problem| {
    ///     let shop = HeaderValue::from_static("https://shop.example.com");
    ///     problem.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, shop);
    /// });
    /// # let _ = charges;
    /// # Ok(())
    /// # }
    /// ```
    pub fn amend_problems(
        self,
        amends: impl Fn(&HeaderMap, &mut Response<Body>) + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.amends = Some(Arc::new(amends)))
    }

    fn useless(
        &self,
        setting: &'static str,
        why: &'static str,
        remedy: &'static str,
    ) -> ConfigError {
        let operation = Arc::clone(&self.0.operation.name);
        ConfigError::HttpLayer { operation, setting, why, remedy }
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
