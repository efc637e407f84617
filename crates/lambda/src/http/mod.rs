//! HTTP requests through API Gateway, Lambda function URLs and load balancers: the
//! `Idempotency-Key` header.
//!
//! ```no_run
//! use lambda_http::{Request, tower::ServiceBuilder, service_fn};
//! use lambda_idempotency::{DynamoDbStore, Idempotency, Operation};
//!
//! async fn charge(request: Request) -> Result<String, std::io::Error> {
//!     Ok("charged".to_owned()) // once per key; a repeated request gets this response again
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), lambda_http::Error> {
//!     let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
//!     let charges = idempotency.http(Operation::new("charges"))?;
//!     lambda_http::run(ServiceBuilder::new().layer(charges).service(service_fn(charge))).await
//! }
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
//! | a `GET`, `PUT`, `DELETE`, ... | the handler's response, each time: these methods are idempotent by themselves |
//! | any, while the store or a kept response is unavailable | 503 with `Retry-After` |
//!
//! The handler finds its [`Call`](crate::Call) among the extensions of the request:
//! `request.extensions().get::<Call>()`.
//!
//! A key counts for one caller. Method, host, path, query and body are its fingerprint.
//! [`HttpLayer::caller`] describes how the caller is determined, and what to set where no default
//! is safe.
//!
//! [draft]: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07

mod body;
mod caller;
mod callers;
mod header;
mod inspect;
mod kept;
mod multipart;
mod problem;
mod request_key;
mod sameness;
mod service;
mod settings;
mod verified;

pub use body::{StreamingIsNotSupported, WholeBody};
pub use service::HttpService;

use std::{fmt, sync::Arc};

use lambda_http::{
    Body, Request,
    http::{HeaderMap, HeaderName, Method, Response, StatusCode},
};
use lambda_idempotency_engine::batch::Engine;
use tower_layer::Layer;

use self::{callers::Callers, settings::Settings};
use crate::{
    error::ConfigError,
    operation::{CompiledPowertools, Operation},
};

/// A layer around an HTTP service; see [`Idempotency::http`](crate::Idempotency::http).
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct HttpLayer(Arc<Settings>);

impl HttpLayer {
    pub(crate) fn new(engine: Engine, operation: &Operation) -> Result<Self, ConfigError> {
        let prepared = operation.prepared()?;
        if prepared.powertools.as_ref().is_some_and(CompiledPowertools::refuses_tenants) {
            return Err(ConfigError::setting(format!(
                "operation `{}`: caller in Powertools keys",
                prepared.name
            )));
        }
        Ok(Self(Arc::new(Settings {
            engine,
            operation: prepared,
            header: HeaderName::from_static("idempotency-key"),
            methods: vec![Method::POST, Method::PATCH],
            keeps: Arc::new(kept::is_kept_by_default),
            callers: Callers::Known,
            by_path: false,
            amends: None,
            on_replay: None,
        })))
    }

    /// Takes the key from another header.
    ///
    /// # Errors
    /// The operation takes its key from the body, by `Operation::key(..)` or as Powertools does, so
    /// headers are not read.
    pub fn header(self, name: HeaderName) -> Result<Self, ConfigError> {
        if self.0.operation.names_key() {
            return Err(self.refused("`.header(..)` has no effect"));
        }
        Ok(self.with(|settings| settings.header = name))
    }

    /// Makes the path a part of the key, for keys from the body that are unique only within a path,
    /// such as the `sku` in `POST /carts/1/items` and in `POST /carts/2/items`. Default: a request
    /// with a used key and another path gets a 422.
    ///
    /// The path is the one that the client sent, including the stage or the base path of a custom
    /// domain; the route has no effect. **If a client sends its second attempt to another path for
    /// the same work, the work is done again**, for example first to the API's own stage and then
    /// to a custom domain's base path. Set it from the start: earlier keys are not found
    /// afterwards.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let items = Operation::new("items").key("sku");
    /// let items = idempotency.http(items)?.one_key_for_each_path()?;
    /// # let _ = items;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The operation does not take its key from the body by `Operation::key(..)`: clients that
    /// choose their keys choose another key for another path, and Powertools keys cannot contain a
    /// path.
    pub fn one_key_for_each_path(self) -> Result<Self, ConfigError> {
        if self.0.operation.powertools.is_some() {
            return Err(self.refused("`.one_key_for_each_path(..)` has no effect"));
        }
        if !self.0.operation.names_key() {
            return Err(self.refused("`.one_key_for_each_path(..)` has no effect"));
        }
        Ok(self.with(|settings| settings.by_path = true))
    }

    /// The methods that are deduplicated. Default: `POST` and `PATCH`.
    ///
    /// # Errors
    /// No method is given, so no request would be deduplicated.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Result<Self, ConfigError> {
        let methods: Vec<Method> = methods.into_iter().collect();
        if methods.is_empty() {
            return Err(self.refused("`.methods(..)` names no method"));
        }
        Ok(self.with(|settings| settings.methods = methods))
    }

    /// Selects the responses that answer later requests; the others release their key. Default: all
    /// except those with which a handler rejects a request before it starts the work (400, 401,
    /// 403, 404, 405, 406, 408, 409, 412, 413, 415, 422, 425, 428, 429, 431). Server errors are
    /// kept, as Stripe does: it is not known how much of the work was done, so it must not start
    /// again.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// // For handlers that undo their work before they return a 5xx:
    /// let charges =
    ///     idempotency.http(Operation::new("charges"))?.keep(|status| status.is_success());
    /// # let _ = charges;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep(self, keeps: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.keeps = Arc::new(keeps))
    }

    /// Names the caller of a request: a string that stays the same for one caller and differs
    /// between callers. For `None` or an empty string, the request is refused with a 403.
    ///
    /// Default: the identity that API Gateway or the function URL verified (the identity id of a
    /// Cognito identity pool, `iss` and `sub` of a token, the `principalId` of a Lambda authorizer,
    /// the IAM user or role), else the credential in the `Authorization` header; a request with none
    /// of these is refused. **Name the caller yourself** where sessions are in cookies, where the
    /// authorizer names no caller, where people share an IAM role, where CloudFront signs for its
    /// viewers, and where clients renew their token between attempts and no authorizer reads it:
    /// with another token, a second attempt would count as another caller's.
    ///
    /// Return only verified values: a client that can choose the value can get another caller's
    /// responses.
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
    /// let charges = idempotency.http(Operation::new("charges"))?.caller(user);
    /// # let _ = charges;
    /// # Ok(())
    /// # }
    /// ```
    pub fn caller(
        self,
        caller: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.callers = Callers::Custom(Arc::new(caller)))
    }

    /// Takes the caller from this header: a name or a credential that belongs to one caller. A
    /// request without the header, with an empty one or with several is refused with a 403.
    ///
    /// **Use only headers that a client cannot choose freely**: credentials that the function or
    /// the service in front of it verifies, and headers that this service sets on each request.
    /// `x-api-key` qualifies only if each caller has its own key. `x-amzn-oidc-identity` is
    /// accepted only from load balancers, and is safe only if *every* rule that leads to the
    /// function authenticates: a load balancer overwrites the header where it authenticates, and
    /// forwards a client's own where it does not. To be sure, verify the signature of
    /// `x-amzn-oidc-data` in [`caller`](Self::caller).
    pub fn caller_from_header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.callers = Callers::Header(name))
    }

    /// Treats all callers as one: for open APIs, and where callers need not be distinguished. **A
    /// client that sends another client's key gets that client's response**, so clients need keys
    /// that cannot be guessed. Replays do not set the cookies of the first response.
    pub fn all_callers_are_one(self) -> Self {
        self.with(|settings| settings.callers = Callers::One)
    }

    /// Changes the problem responses that clients get instead of the handler's response, given the
    /// headers of the request: for CORS, or for your own format. It is not called for the handler's
    /// responses and their replays. A layer *around* this one (tower-http's `CorsLayer`) changes
    /// all responses.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// use lambda_http::http::{HeaderValue, header::ACCESS_CONTROL_ALLOW_ORIGIN};
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let charges = idempotency.http(Operation::new("charges"))?.amend_problems(|_, problem| {
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

    /// Changes the responses that later requests with the key get, given the headers of such a
    /// request. It is not called for the first response, nor for problems, and what it changes is
    /// not stored. Default: later requests get the first response, with
    /// `Idempotency-Replayed: true`, which the hook may also change or remove.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// use lambda_http::http::{HeaderValue, header::CACHE_CONTROL};
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let charges = idempotency.http(Operation::new("charges"))?.on_replay(|_, response| {
    ///     let headers = response.headers_mut();
    ///     headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    /// });
    /// # let _ = charges;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If `hook` panics, the request gets the response as it would without a hook.
    pub fn on_replay(
        self,
        hook: impl Fn(&HeaderMap, &mut Response<Body>) + Send + Sync + 'static,
    ) -> Self {
        self.with(|settings| settings.on_replay = Some(Arc::new(hook)))
    }

    fn refused(&self, problem: &str) -> ConfigError {
        ConfigError::setting(format!("operation `{}`: {problem}", self.0.operation.name))
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
