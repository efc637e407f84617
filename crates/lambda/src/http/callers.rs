//! Determines the caller of a request. A key that clients choose counts for one caller only.
//!
//! Two callers may send the same key, by chance or on purpose, and neither may get the other's
//! response. A caller is therefore the identity that API Gateway or the function URL verified, or
//! the credential that was sent. A request with neither is refused, unless the function configures
//! another way.

use std::sync::Arc;

use lambda_http::{
    Request, RequestExt as _,
    http::{
        HeaderName,
        header::{AUTHORIZATION, COOKIE},
    },
    request::RequestContext,
};
use lambda_idempotency_core::contained::caught;

use super::{
    caller::{Caller, UnknownCaller},
    verified::{Verified, verified},
};

/// How the caller of a request is determined.
#[derive(Clone)]
pub(super) enum Callers {
    /// By the verified identity, or by the `Authorization` header.
    Known,
    /// By a header that the function configures.
    Header(HeaderName),
    /// By the function's own code.
    Custom(Arc<CallerFn>),
    /// All callers are one.
    One,
}

pub(super) type CallerFn = dyn Fn(&Request) -> Option<String> + Send + Sync;

impl Callers {
    /// The caller of a request; `None` if all callers are one.
    pub(super) fn of(&self, request: &Request) -> Result<Option<Caller>, UnknownCaller> {
        match self {
            Self::One => Ok(None),
            Self::Known => known(request).map(Some),
            Self::Header(name) => in_header(request, name).map(Some),
            Self::Custom(caller_of) => match caught(|| caller_of(request)) {
                Some(Some(name)) if !name.is_empty() => {
                    Ok(Some(Caller { name, is_shared: false, is_verified: true }))
                }
                Some(_) => Err(UnknownCaller::NotReturned),
                None => Err(UnknownCaller::Panicked),
            },
        }
    }
}

/// The verified identity; where nothing verifies requests, the credential that was sent. The function then has to check it.
/// Two credentials are two callers.
fn known(request: &Request) -> Result<Caller, UnknownCaller> {
    match verified(request)? {
        Verified::Caller(caller) => Ok(caller),
        Verified::Unnamed => Err(UnknownCaller::Authorizer),
        Verified::Nothing => credential(request),
    }
}

/// Schemes whose credential stays the same between attempts, until it is renewed. Other schemes
/// sign each request (`AWS4-HMAC-SHA256`, `Digest`, `OAuth`, ...), so each attempt would count as a
/// new caller's.
const STABLE_SCHEMES: [&str; 5] = ["basic", "bearer", "dpop", "token", "apikey"];

/// The caller by the credential that was sent.
fn credential(request: &Request) -> Result<Caller, UnknownCaller> {
    let mut sent = request.headers().get_all(AUTHORIZATION).iter();
    let value = match (sent.next(), sent.next()) {
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(UnknownCaller::Repeated),
        (None, _) if request.headers().contains_key(COOKIE) => return Err(UnknownCaller::Cookies),
        (None, _) => return Err(UnknownCaller::Anonymous),
    };
    let text = value.as_bytes().trim_ascii();
    let mut words = text.splitn(2, |byte| *byte == b' ');
    let scheme = words.next().unwrap_or_default();
    if scheme.is_empty() {
        return Err(UnknownCaller::Anonymous);
    }
    let is_named = |name: &&&str| scheme.eq_ignore_ascii_case(name.as_bytes());
    let stable = STABLE_SCHEMES.iter().find(is_named);
    let Some(rest) = words.next() else {
        // A single word is a token without a scheme, or a scheme without a token.
        return match stable {
            None => Ok(Caller::claimed("credential", &escaped(text))),
            Some(_) => Err(UnknownCaller::Anonymous),
        };
    };
    let scheme = stable.ok_or(UnknownCaller::Scheme)?;
    // The case of the scheme and the number of spaces after it mean nothing (RFC 9110, section 11), and each byte of the rest
    // does.
    let rest = escaped(rest.trim_ascii_start());
    Ok(Caller::claimed("credential", &format!("{scheme} {rest}")))
}

/// Headers that only a load balancer sets, about a user or a client's certificate that it has verified; from other sources a
/// client may have chosen them.
const LOAD_BALANCER: [&str; 2] = ["x-amzn-oidc-", "x-amzn-mtls-"];

fn in_header(request: &Request, name: &HeaderName) -> Result<Caller, UnknownCaller> {
    let from_load_balancer = matches!(request.request_context_ref(), Some(RequestContext::Alb(_)));
    let is_of_load_balancer = LOAD_BALANCER.iter().any(|prefix| name.as_str().starts_with(prefix));
    if is_of_load_balancer && !from_load_balancer {
        return Err(UnknownCaller::NotFromLoadBalancer(name.clone()));
    }
    let mut sent = request.headers().get_all(name).iter();
    match (sent.next(), sent.next()) {
        (Some(value), None) if !value.is_empty() => {
            Ok(Caller::claimed("header", &escaped(value.as_bytes())))
        }
        _ => Err(UnknownCaller::Header(name.clone())),
    }
}

fn escaped(value: &[u8]) -> String {
    value.escape_ascii().to_string()
}
