//! The settings of a layer: as the user chooses them, and as its services share them.

use std::{marker::PhantomData, sync::Arc};

use lambda_http::{
    Body, IntoResponse, Request,
    http::{HeaderName, Method, Response, StatusCode, request::Parts},
};
use lambda_idempotency_core::{clock::BoxFuture, contained::caught, policy::Policy};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_keys::{IntoPayloadPath, KeyPath};

use super::{caller::Callers, kept};
use crate::{
    handler::{Callback, ClonedForEachCall, call_clone},
    operation::Prepared,
};

/// The settings of a layer besides its operation: where requests have their key, whose request it is,
/// and which requests and responses it is for. Given to
/// [`Idempotency::http`](crate::Idempotency::http).
///
/// ```
/// use lambda_idempotency::{Idempotency, MemoryStore, Operation, http::Http};
/// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
/// let idempotency = Idempotency::new(MemoryStore::new());
/// // Clients choose a key for each request:
/// let charges = idempotency.http(&Operation::new("charges"), Http::by_header())?;
/// // A field of the body is the key:
/// let items = Http::by_body().key("sku").one_key_for_each_path();
/// let items = idempotency.http(&Operation::new("items"), items)?;
/// # let _ = (charges, items);
/// # Ok(())
/// # }
/// ```
///
/// A setting that has no effect for one of the two does not compile:
///
/// ```compile_fail,E0599
/// # use lambda_idempotency::http::Http;
/// # use lambda_http::http::HeaderName;
/// let _ = Http::by_body().header(HeaderName::from_static("x-request-id"));
/// ```
///
/// ```compile_fail,E0599
/// # use lambda_idempotency::http::Http;
/// let _ = Http::by_header().one_key_for_each_path();
/// ```
///
/// Functions in these settings may panic. A request whose caller is then not known is refused, a
/// request whose need of a key is not known needs one, and a response is then kept.
#[derive(Clone)]
#[must_use = "give it to `Idempotency::http`"]
pub struct Http<K> {
    pub(super) options: Options,
    by: PhantomData<fn() -> K>,
}

/// The key is in a header: see [`Http::by_header`].
#[derive(Clone, Copy, Debug)]
pub enum ByHeader {}

/// The key is in the body: see [`Http::by_body`].
#[derive(Clone, Copy, Debug)]
pub enum ByBody {}

impl Http<ByHeader> {
    /// Clients choose the key of each request, and send it in the header `Idempotency-Key`, once: a structured-field
    /// string of 1 to 255 characters. A key without quotes has only visible ASCII characters and no comma, and is the
    /// same key as with quotes.
    pub fn by_header() -> Self {
        Self::new(KeyPlace::Header(HeaderName::from_static("idempotency-key")))
    }

    /// Takes the key from another header.
    pub fn header(self, name: HeaderName) -> Self {
        self.with(|options| options.keys = KeyPlace::Header(name))
    }
}

impl Http<ByBody> {
    /// The key is in the JSON body, where the operation's [`key`](crate::Operation::key) finds it.
    /// Headers are not read for keys.
    pub fn by_body() -> Self {
        Self::new(KeyPlace::Body { path: None, by_path: false })
    }

    /// Finds the key with this expression instead of the operation's, for an operation whose other
    /// work has its key elsewhere. Default: the operation's.
    pub fn key(self, path: impl IntoPayloadPath) -> Self {
        let path = path.into_path();
        self.with(|options| {
            if let KeyPlace::Body { path: own, .. } = &mut options.keys {
                *own = Some(path);
            }
        })
    }

    /// Makes the path a part of the key, for keys that are unique only within a path, such as the
    /// `sku` in `POST /carts/1/items` and in `POST /carts/2/items`. Default: a request with a used
    /// key and another path gets a 422.
    ///
    /// The path is the one that the client sent, including the stage or the base path of a custom
    /// domain; the route has no effect. **If a client sends its second attempt to another path for
    /// the same work, the work is done again**, for example first to the API's own stage and then
    /// to a custom domain's base path. Set it from the start: earlier keys are not found
    /// afterwards.
    pub fn one_key_for_each_path(self) -> Self {
        self.with(|options| {
            if let KeyPlace::Body { by_path, .. } = &mut options.keys {
                *by_path = true;
            }
        })
    }
}

/// # For both
impl<K> Http<K> {
    fn new(keys: KeyPlace) -> Self {
        Self { options: Options::new(keys), by: PhantomData }
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Decides for each request whether it needs a key, by its method, path and headers. The other
    /// requests go to the service unchanged, with or without a key. Default: `POST` and `PATCH`
    /// need one, because the other methods are idempotent by themselves.
    ///
    /// The path is the one that the service sees: of REST APIs it begins with the stage (`/prod/search`), and within a
    /// nested router of axum it lacks the prefix. **A request whose path is not the expected one must need a key**, so
    /// name those that need none.
    ///
    /// A request that needs a key and has none is answered with a 400, unless the operation has
    /// [`OnMissingKey::RunUnprotected`](crate::policy::OnMissingKey::RunUnprotected).
    ///
    /// ```
    /// use lambda_http::http::Method;
    /// use lambda_idempotency::http::Http;
    /// let all_but_searches = Http::by_header()
    ///     .needs_key(|request| request.method == Method::POST && request.uri.path() != "/search");
    /// # let _ = all_but_searches;
    /// ```
    pub fn needs_key(self, needs: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|options| options.needs_key = Arc::new(needs))
    }

    /// Verifies a request before it gets any answer that is stored, and before its key is claimed.
    /// If the result is an error, the error is the answer. Default: no verification beside that of
    /// an authorizer in front of the function.
    ///
    /// **Set it where the service itself verifies tokens, cookies or signatures.** A replay does not
    /// reach the service, so without this hook a request that somebody else has captured, or whose
    /// token was revoked, still gets the first response until the key expires.
    ///
    /// **Only requests that need a key are verified.** Others, such as every `GET`, go to the handler unverified, so the handler
    /// keeps a check of its own.
    ///
    /// The hook gets a copy of the request. Any response of `lambda_http` or axum is an error:
    ///
    /// ```
    /// use lambda_http::{Request, http::{StatusCode, header::AUTHORIZATION}};
    /// use lambda_idempotency::http::Http;
    ///
    /// async fn verified(request: Request) -> Result<(), (StatusCode, &'static str)> {
    ///     let token = request.headers().get(AUTHORIZATION);
    ///     // In reality: check the signature of the token, and whether it has expired.
    ///     if token.is_some_and(|token| token == "Bearer of-ann") {
    ///         return Ok(());
    ///     }
    ///     Err((StatusCode::UNAUTHORIZED, "send a valid token"))
    /// }
    /// let charges = Http::by_header().verify(verified);
    /// # let _ = charges;
    /// ```
    ///
    /// If the hook panics, the request gets a 500. Replays to verified requests set the cookies of
    /// the first response. If there are several hooks, each has to accept the request, in their order.
    pub fn verify<F, R>(self, verify: F) -> Self
    where
        F: ClonedForEachCall + Callback<Request, Result<(), R>>,
        R: IntoResponse + Send + 'static,
    {
        self.with(|options| {
            let before = options.verify.take();
            let both = move |request: Request| {
                let (before, verify) = (before.clone(), verify.clone());
                let verified = async move {
                    if let Some(before) = before {
                        before(request.clone()).await?;
                    }
                    match call_clone(&verify, request).await {
                        Ok(()) => Ok(()),
                        Err(refused) => Err(refused.into_response().await),
                    }
                };
                Box::pin(verified) as BoxFuture<'static, _>
            };
            options.verify = Some(Arc::new(both));
        })
    }

    /// Names the caller of a request: a string that stays the same for one caller and differs
    /// between callers. For `None` or an empty string, the request is refused with a 403.
    ///
    /// Default: the identity that API Gateway or the function URL verified (the identity id of a
    /// Cognito identity pool, `iss` and `sub` of a token, the `principalId` of a Lambda authorizer,
    /// the IAM user or role) or, where there is no authorizer, the credential in the `Authorization` header; a request with
    /// none of these is refused, and so is one whose authorizer does not name its caller. **Name the caller yourself** where sessions are in cookies, where the
    /// authorizer names no caller, where people share an IAM role, where CloudFront signs for its
    /// viewers, and where clients renew their token between attempts and no authorizer reads it:
    /// with another token, a second attempt would count as another caller's. The case of the credential's scheme and the
    /// spaces after it make no difference. See
    /// [for whom a key counts](crate::guide::sources::http#for-whom-a-key-counts).
    ///
    /// Return only verified values: a client that can choose the value can get another caller's
    /// responses, with the cookies in them.
    ///
    /// ```
    /// use lambda_http::{Request, RequestExt as _, request::RequestContext};
    /// use lambda_idempotency::http::Http;
    /// /// A Lambda authorizer of an HTTP API puts the user into its context.
    /// fn user(request: &Request) -> Option<String> {
    ///     let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
    ///         return None;
    ///     };
    ///     let authorizer = context.authorizer.as_ref()?;
    ///     Some(authorizer.fields.get("userId")?.as_str()?.to_owned())
    /// }
    /// let charges = Http::by_header().caller(user);
    /// # let _ = charges;
    /// ```
    pub fn caller(
        self,
        caller: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.with(|options| options.choose(Callers::Custom(Arc::new(caller))))
    }

    /// Takes the caller from this header: a name or a credential that belongs to one caller. A
    /// request without the header, with an empty one or with several is refused with a 403.
    ///
    /// **Use only headers that a client cannot choose freely**: credentials that the function or
    /// the service in front of it verifies, and headers that this service sets on each request.
    /// `x-api-key` qualifies only if each caller has its own key. `x-amzn-oidc-identity` and
    /// `x-amzn-mtls-clientcert-subject` are accepted only from load balancers, and are safe only if
    /// *every* rule that leads to the function authenticates, and every listener verifies certificates
    /// (mutual TLS in the mode `verify`, not `passthrough`): a load balancer overwrites the header
    /// where it authenticates, and forwards a client's own where it does not. To be sure, verify the signature of
    /// `x-amzn-oidc-data` in [`caller`](Self::caller) or in [`verify`](Self::verify).
    pub fn caller_from_header(self, name: HeaderName) -> Self {
        self.with(|options| options.choose(Callers::Header(name)))
    }

    /// Treats all callers as one: for open APIs, and where callers need not be distinguished. **A
    /// client that sends another client's key gets that client's response**, so clients need keys
    /// that cannot be guessed. Replays do not set the cookies of the first response.
    pub fn all_callers_are_one(self) -> Self {
        self.with(|options| options.choose(Callers::One))
    }

    /// Selects the responses that answer later requests; the others release their key. Default: all
    /// except those with which a handler rejects a request before it starts the work (400, 401,
    /// 403, 404, 405, 406, 408, 409, 412, 413, 415, 422, 425, 428, 429, 431). Server errors are
    /// kept, as Stripe does: it is not known how much of the work was done, so it must not start
    /// again.
    ///
    /// ```
    /// # use lambda_idempotency::http::Http;
    /// // For handlers that undo their work before they return an error:
    /// let charges = Http::by_header().keep(|status| !status.is_client_error() && !status.is_server_error());
    /// # let _ = charges;
    /// ```
    pub fn keep(self, keeps: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.with(|options| options.keeps = Arc::new(keeps))
    }

    /// Headers that belong to one exchange and not to the work, such as `x-request-id` or those of rate limits: replays do not
    /// have them. Headers of a connection (`connection`, `transfer-encoding`, ...) and `date` are never replayed.
    /// Default: all others are.
    ///
    /// ```
    /// # use lambda_idempotency::http::Http;
    /// use lambda_http::http::HeaderName;
    /// let charges = Http::by_header().not_replayed([HeaderName::from_static("x-request-id")]);
    /// # let _ = charges;
    /// ```
    pub fn not_replayed(self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.with(|options| options.not_replayed.extend(names))
    }
}

/// The settings that a layer was given.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) keys: KeyPlace,
    pub(super) needs_key: Arc<NeedsKey>,
    pub(super) keeps: Arc<Keeps>,
    pub(super) callers: Callers,
    pub(super) verify: Option<Arc<Verify>>,
    /// Headers of responses that are not replayed.
    pub(super) not_replayed: Vec<HeaderName>,
    /// A setting that another one has replaced.
    pub(super) mistake: Option<&'static str>,
}

/// Where requests have their key.
#[derive(Clone, Debug)]
pub(super) enum KeyPlace {
    Header(HeaderName),
    Body {
        /// The layer's own path; otherwise the operation's.
        path: Option<KeyPath>,
        /// Whether the path of the request is a part of the key.
        by_path: bool,
    },
}

/// A layer's engine, operation and options, shared with its services.
pub(super) struct LayerSettings {
    pub(super) engine: Engine,
    pub(super) operation: Arc<Prepared>,
    /// The operation's policy for requests outside of Lambda, whose client may go away.
    pub(super) outside: Policy,
    pub(super) options: Options,
}

pub(super) type NeedsKey = dyn Fn(&Parts) -> bool + Send + Sync;
pub(super) type Keeps = dyn Fn(StatusCode) -> bool + Send + Sync;
pub(super) type Verify =
    dyn Fn(Request) -> BoxFuture<'static, Result<(), Response<Body>>> + Send + Sync;

impl Options {
    pub(super) fn new(keys: KeyPlace) -> Self {
        Self {
            keys,
            needs_key: Arc::new(|parts| [Method::POST, Method::PATCH].contains(&parts.method)),
            keeps: Arc::new(kept::is_kept_by_default),
            callers: Callers::Known,
            verify: None,
            not_replayed: Vec::new(),
            mistake: None,
        }
    }

    /// Sets how callers are told apart, which an earlier setting must not have said.
    pub(super) fn choose(&mut self, callers: Callers) {
        if !matches!(self.callers, Callers::Known) {
            self.mistake = Some(
                "of `.caller(..)`, `.caller_from_header(..)` and `.all_callers_are_one()` the last would replace the \
                 others; choose one",
            );
        }
        self.callers = callers;
    }

    /// Whether a request needs a key.
    pub(super) fn needs_key(&self, parts: &Parts) -> bool {
        caught(|| (self.needs_key)(parts)).unwrap_or(true)
    }
}

impl KeyPlace {
    /// Whether the path of a request is a part of its key.
    pub(super) const fn by_path(&self) -> bool {
        matches!(self, Self::Body { by_path: true, .. })
    }
}
