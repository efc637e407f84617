//! Determines the caller of a request. A key that clients choose counts for one caller only.
//!
//! Two callers may send the same key, by chance or on purpose, and neither may get the other's response. A caller is
//! therefore the identity that API Gateway, the function URL or VPC Lattice verified, or the credential that was sent. A
//! request with neither is refused, unless the function configures another way.

use std::sync::Arc;

use lambda_http::{
    Request, RequestExt as _,
    aws_lambda_events::{
        apigw::{
            ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer,
            ApiGatewayRequestAuthorizerIamDescription,
        },
        vpc_lattice::VpcLatticeRequestV2Context,
    },
    http::{
        HeaderName,
        header::{AUTHORIZATION, COOKIE},
    },
    request::RequestContext,
};
use lambda_idempotency_core::contained::caught;
use serde_json::Value;

/// The caller that a key counts for.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) name: String,
    /// Whether several people may have this name. They must not get each other's cookies.
    pub(super) is_shared: bool,
    /// Whether something before the handler has verified who it is.
    pub(super) is_verified: bool,
}

/// Why a request has no caller. The message contains the remedy, and nothing from the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnknownCaller {
    /// All users of an identity pool have one role and one session name.
    #[error(
        "it was signed with the credentials of a Cognito identity pool and has no identity id; \
         name the caller with `.caller(..)`"
    )]
    CognitoIdentity,
    /// CloudFront signs with its own credentials, and so does a Lambda@Edge function.
    #[error(
        "it was signed by a CloudFront distribution, the same for all viewers; name the caller \
         with `.caller(..)` or `.caller_from_header(..)` or, if callers need not be distinguished, \
         use `.all_callers_are_one()`"
    )]
    Distribution,
    /// The session is named after a person, in a role that other people seem to use, too.
    #[error(
        "it was signed in a role session named like an e-mail address, so several people seem to \
         share the role; name the caller with `.caller(..)`"
    )]
    SharedRole,
    /// The authorizer accepted the request but does not name the caller. The credential does not stand in for it: it may be
    /// renewed between two attempts.
    #[error(
        "its authorizer does not name the caller (no `iss` and `sub`, no `principalId` of the \
         caller's own); let the authorizer put `principalId` into its context, or name the caller \
         with `.caller(..)`"
    )]
    Authorizer,
    #[error("it has more than one `Authorization` header")]
    Repeated,
    #[error(
        "its `Authorization` header changes with each attempt, or has a scheme that is not known \
         to stay the same; name the caller with `.caller(..)`"
    )]
    Scheme,
    #[error(
        "it has cookies and no credential, and a `Cookie` header changes between attempts; read \
         the session in `.caller(..)`"
    )]
    Cookies,
    #[error(
        "no authorizer names its caller, and it has no credential in an `Authorization` header; if another header \
         identifies the caller, set it with `.caller_from_header(..)` or read it in `.caller(..)`; \
         if callers need not be distinguished, use `.all_callers_are_one()`"
    )]
    Anonymous,
    #[error(
        "it does not have exactly one non-empty header `{0}`, from which the function takes the \
         caller"
    )]
    Header(HeaderName),
    #[error("it has a header `{0}`, which only load balancers set, but it did not come from one")]
    NotFromLoadBalancer(HeaderName),
    #[error("`.caller(..)` returned no caller")]
    NotReturned,
    #[error("`.caller(..)` panicked")]
    Panicked,
    #[error("`.verify(..)` panicked")]
    VerifyPanicked,
    /// It has no headers, and `lambda_http` gives it the method `GET`, with which it would pass unprotected.
    #[error(
        "it is a message of a WebSocket API, which has no headers; serve messages in a function of their own, with \
         the source `Invoke` and a key from the message"
    )]
    WebSocket,
}

impl UnknownCaller {
    /// Whether the cause is the function or its API, and not the client's request. A client chooses the headers that it sends
    /// and the names of its roles and sessions.
    pub(super) const fn is_server_error(&self) -> bool {
        matches!(self, Self::Authorizer | Self::Panicked | Self::VerifyPanicked | Self::WebSocket)
    }
}

impl Caller {
    /// A caller of this kind that was verified. Names of different kinds never agree.
    pub(super) fn verified(kind: &str, name: &str) -> Self {
        Self { name: format!("{kind} {name}"), is_shared: false, is_verified: true }
    }

    /// A caller of this kind as the request claims it.
    pub(super) fn claimed(kind: &str, name: &str) -> Self {
        Self { is_verified: false, ..Self::verified(kind, name) }
    }
}

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

/// The answer of an authorizer.
pub(super) enum Verified {
    Caller(Caller),
    /// It accepted the request, but does not name the caller.
    Unnamed,
    /// There is no authorizer.
    Nothing,
}

/// The identity that the authorizer of the API or of the function URL, or the auth policy of VPC Lattice, verified.
pub(super) fn verified(request: &Request) -> Result<Verified, UnknownCaller> {
    match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV1(v1)) => payload_v1(v1, request),
        Some(RequestContext::ApiGatewayV2(v2)) => match &v2.authorizer {
            Some(authorizer) => payload_v2(authorizer, request),
            None => Ok(Verified::Nothing),
        },
        Some(RequestContext::VpcLattice(lattice)) => service_network(lattice),
        _ => Ok(Verified::Nothing),
    }
}

/// A service of VPC Lattice. It names a principal only if its auth policy has authenticated the request.
///
/// <https://docs.aws.amazon.com/vpc-lattice/latest/ug/lambda-functions.html>
fn service_network(context: &VpcLatticeRequestV2Context) -> Result<Verified, UnknownCaller> {
    let principal = context.identity.as_ref().and_then(|identity| identity.principal.as_deref());
    let Some(arn) = non_empty(principal) else { return Ok(Verified::Nothing) };
    let caller = iam(arn)?;
    // Whoever has the role is this caller.
    let is_shared = caller.is_shared || arn.contains(":role/");
    Ok(Verified::Caller(Caller { is_shared, ..caller }))
}

/// A REST API, or an HTTP API with payload format 1.0.
fn payload_v1(
    context: &ApiGatewayProxyRequestContext,
    request: &Request,
) -> Result<Verified, UnknownCaller> {
    let identity = &context.identity;
    if let Some(id) = non_empty(identity.cognito_identity_id.as_deref()) {
        return Ok(Verified::Caller(Caller::verified("cognito", id)));
    }
    let fields = &context.authorizer.fields;
    let by_authorizer =
        subject(fields.get("claims")).or_else(|| principal(fields.get("principalId")));
    if let Some(caller) = by_authorizer {
        return Ok(Verified::Caller(caller));
    }
    if let Some(arn) = non_empty(identity.user_arn.as_deref()) {
        // Edge-optimized REST APIs are behind a distribution of AWS, which adds the header but
        // forwards the client's signature.
        if !is_rest(context) {
            not_for_viewers(request)?;
        }
        return iam(arn).map(Verified::Caller);
    }
    // An API without an authorizer sends a context in which every field is `null`.
    let verified = fields.values().any(|field| !field.is_null());
    Ok(if verified { Verified::Unnamed } else { Verified::Nothing })
}

/// Whether it is a REST API. Its resources have ids of letters and digits; HTTP APIs send the key
/// of the route (`POST /charges`, `$default`) or nothing instead.
fn is_rest(context: &ApiGatewayProxyRequestContext) -> bool {
    let id = non_empty(context.resource_id.as_deref());
    id.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// An HTTP API or a function URL.
fn payload_v2(
    authorizer: &ApiGatewayRequestAuthorizer,
    request: &Request,
) -> Result<Verified, UnknownCaller> {
    if let Some(iam) = &authorizer.iam {
        return signed(iam, request).map(Verified::Caller);
    }
    if let Some(jwt) = &authorizer.jwt {
        let claim = |name| jwt.claims.get(name).map(String::as_str);
        let caller = issued(claim("iss"), claim("sub"));
        return Ok(caller.map_or(Verified::Unnamed, Verified::Caller));
    }
    // A Lambda authorizer can put anything into its context; these two names are read as in REST
    // APIs.
    let fields = &authorizer.fields;
    let caller = subject(fields.get("claims")).or_else(|| principal(fields.get("principalId")));
    let unnamed = if fields.is_empty() { Verified::Nothing } else { Verified::Unnamed };
    Ok(caller.map_or(unnamed, Verified::Caller))
}

/// The header that CloudFront adds to each request that it forwards.
const CLOUDFRONT: HeaderName = HeaderName::from_static("x-amz-cf-id");

fn signed(
    iam: &ApiGatewayRequestAuthorizerIamDescription,
    request: &Request,
) -> Result<Caller, UnknownCaller> {
    let cognito = iam.cognito_identity.as_ref();
    if let Some(id) = cognito.and_then(|cognito| non_empty(cognito.identity_id.as_deref())) {
        return Ok(Caller::verified("cognito", id));
    }
    not_for_viewers(request)?;
    self::iam(iam.user_arn.as_deref().unwrap_or_default())
}

/// Refuses requests that came through a distribution: the signature is almost always that of the
/// distribution or of a Lambda@Edge function.
fn not_for_viewers(request: &Request) -> Result<(), UnknownCaller> {
    if request.headers().contains_key(CLOUDFRONT) {
        Err(UnknownCaller::Distribution)
    } else {
        Ok(())
    }
}

/// The session name that every user of an identity pool has.
const COGNITO_SESSION: &str = "CognitoIdentityCredentials";
/// The role in which CloudFront signs for a distribution with an origin access control.
const ORIGIN_ACCESS: &str = "OriginAccessControlRole";
/// The prefix of the roles of IAM Identity Center. Their sessions are named after the user.
const IDENTITY_CENTER: &str = "AWSReservedSSO_";

/// An IAM identity: a user, or an assumed role without its session. The client that assumes a role
/// chooses the session's name, and each task of a service has another one, although any of the
/// tasks may send the next attempt.
fn iam(arn: &str) -> Result<Caller, UnknownCaller> {
    if !arn.starts_with("arn:") {
        return Err(UnknownCaller::Authorizer);
    }
    let role = arn.split_once(":assumed-role/").and_then(|(account, role)| {
        let (role, session) = role.split_once('/')?;
        Some((account, role, session))
    });
    match role {
        Some((_, _, COGNITO_SESSION)) => Err(UnknownCaller::CognitoIdentity),
        Some((_, ORIGIN_ACCESS, _)) => Err(UnknownCaller::Distribution),
        Some((_, role, _)) if role.starts_with(IDENTITY_CENTER) => Ok(Caller::verified("iam", arn)),
        // With web identities the client chooses the session's name, so it does not identify the
        // caller either.
        Some((_, _, session)) if session.contains('@') => Err(UnknownCaller::SharedRole),
        Some((account, role, _)) => {
            Ok(Caller { is_shared: true, ..Caller::verified("role", &format!("{account} {role}")) })
        }
        None => Ok(Caller::verified("iam", arn)),
    }
}

/// The subject of a token, with its issuer, because a subject is unique only for its issuer.
fn issued(issuer: Option<&str>, subject: Option<&str>) -> Option<Caller> {
    let (issuer, subject) = (non_empty(issuer)?, non_empty(subject)?);
    Some(Caller::verified("subject", &format!("{}:{issuer}{subject}", issuer.len())))
}

fn subject(claims: Option<&Value>) -> Option<Caller> {
    let claim = |name| claims?.get(name)?.as_str();
    issued(claim("iss"), claim("sub"))
}

/// The `principalId`s that AWS's sample authorizers return for every caller. An authorizer that
/// still returns one of them does not name the caller.
const SAMPLES: [&str; 4] = ["user", "me", "user|a1b2c3d4", "abcdef"];

fn principal(id: Option<&Value>) -> Option<Caller> {
    let id = non_empty(id?.as_str())?;
    (!SAMPLES.contains(&id)).then(|| Caller::verified("principal", id))
}

fn non_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
