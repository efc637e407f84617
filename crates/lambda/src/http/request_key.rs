//! The key, the caller and the fingerprint of a request.

use lambda_http::{Body, Request, RequestExt as _};
use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_engine::call::RecordId;

use super::{
    caller::{Caller, UnknownCaller},
    header,
    kept::Cookies,
    problem::Problem,
    sameness,
    settings::{Keys, Settings},
};
use crate::{OnMissingKey, find_key::Texts, rejection::Rejection};

/// A request's key, its scope and its fingerprint.
pub(super) struct RequestKey {
    /// The request's id.
    pub(super) id: RecordId,
    /// The key in the header, if the operation takes it from there.
    pub(super) key: Option<String>,
    pub(super) scope: String,
    pub(super) fingerprint: Compared,
    /// Whether replays set the cookies of the response.
    pub(super) cookies: Cookies,
}

/// What is compared between two requests with one key.
pub(super) enum Compared {
    /// What they ask for, and the part of the body that an expression selects.
    Selection { target: String },
    /// What they ask for, and the whole body.
    Whole(Fingerprint),
}

impl Settings {
    /// Reads the key, the caller and the fingerprint of a request.
    pub(super) fn request_key(&self, request: &Request) -> Result<RequestKey, Problem> {
        let key = self.header_key(request)?;
        let is_keyed = key.is_some() || self.operation.names_key();
        // Without a key the caller makes no difference.
        let caller = if is_keyed { self.caller(request)? } else { None };
        if sameness::has_lost_query(request) {
            let detail =
                "Its query is not UTF-8 text. Send it percent-encoded as UTF-8.".to_owned();
            return Err(Problem::key(
                "The request cannot be compared with others of its key",
                detail,
            ));
        }
        let form = &self.operation.key_format;
        let target = sameness::target(request, form);
        let fingerprint = match self.operation.fingerprint {
            Some(_) if !self.operation.is_of_powertools() => Compared::Selection { target },
            _ => Compared::Whole(sameness::with_body(&target, request, form)),
        };
        let cookies = self.cookies(caller.as_ref());
        let caller = caller.as_ref().map(|caller| &*caller.name);
        let scope = sameness::scope(request, caller, self.options.keys.by_path());
        let context = request.lambda_context_ref();
        let id = context.map_or("", |context| context.request_id.as_str());
        Ok(RequestKey { id: RecordId::new("http", id), key, scope, fingerprint, cookies })
    }

    /// The key in the header; `None` if the operation takes its key from the body.
    fn header_key(&self, request: &Request) -> Result<Option<String>, Problem> {
        self.read_header(request).inspect_err(|problem| {
            let operation = &*self.operation.name;
            tracing::warn!(operation, "request refused: {}", problem.describe());
        })
    }

    fn read_header(&self, request: &Request) -> Result<Option<String>, Problem> {
        let Keys::Header(header) = &self.options.keys else { return Ok(None) };
        let key = header::key(request.headers(), header).map_err(|error| {
            let detail = format!("The header `{header}` is not a valid key: {error}.");
            Problem::key("The idempotency key is not valid", detail)
        })?;
        if key.is_none() && self.operation.on_missing_key != OnMissingKey::RunUnprotected {
            let detail = format!(
                "Send the header `{header}` with a new value for each request, such as a UUID, and \
                 with the same value when you send the request again."
            );
            return Err(Problem::key("The request has no idempotency key", detail));
        }
        Ok(key)
    }

    /// The caller; `None` if all callers are one. If it is not known, the reason is logged.
    fn caller(&self, request: &Request) -> Result<Option<Caller>, Problem> {
        self.options.callers.of(request).map_err(|unknown| self.unknown(&unknown))
    }

    /// The problem of a request whose caller is not known. The reason is logged.
    pub(super) fn unknown(&self, unknown: &UnknownCaller) -> Problem {
        let operation = &*self.operation.name;
        if unknown.is_server_error() {
            tracing::error!(operation, "request refused, its caller is not known: {unknown}");
        } else {
            tracing::warn!(operation, "request refused, its caller is not known: {unknown}");
        }
        Problem::caller(unknown)
    }

    /// Whether a replay may set the cookies of the first response: only if it goes to the same caller,
    /// and something has verified that before. The handler does not see the second request.
    fn cookies(&self, caller: Option<&Caller>) -> Cookies {
        let is_own = caller.is_some_and(|caller| {
            !caller.is_shared && (caller.is_verified || self.options.verify.is_some())
        });
        if is_own && !self.operation.is_of_powertools() { Cookies::Kept } else { Cookies::Dropped }
    }

    /// What must agree between two requests with one key: what they ask for, and the whole body or
    /// the part that the operation's fingerprint selects. A Powertools fingerprint stays as
    /// Powertools writes it.
    pub(super) fn fingerprint(
        &self,
        request_key: &RequestKey,
        own: Option<Fingerprint>,
    ) -> Fingerprint {
        match (&request_key.fingerprint, own) {
            (Compared::Selection { target }, Some(selection)) => {
                sameness::with_selection(target, &selection, &self.operation.key_format)
            }
            (Compared::Selection { target }, None) => Fingerprint::new(target.clone()),
            (Compared::Whole(_), Some(of_powertools)) => of_powertools,
            (Compared::Whole(whole), None) => whole.clone(),
        }
    }

    /// The texts that a key is selected from; `None` if the request has no key and runs without
    /// one.
    pub(super) fn texts<'w>(
        &self,
        request_key: &'w RequestKey,
        body: &'w str,
    ) -> Option<Texts<'w>> {
        let identity = request_key.key.as_deref().map(|key| Ok(vec!["http", key]));
        (identity.is_some() || self.operation.names_key()).then_some(Texts {
            payload: body,
            record: body,
            identity,
        })
    }
}

/// The body for expressions.
pub(super) fn text(body: &Body) -> Result<&str, Rejection> {
    std::str::from_utf8(body).map_err(|_| Rejection::BodyNotText)
}

/// Why a body cannot be read, with the remedies of a request, which has no record around it.
pub(super) fn of_body(rejection: Rejection) -> Rejection {
    match rejection {
        Rejection::Payload(error) => Rejection::Body(error),
        other => other,
    }
}
