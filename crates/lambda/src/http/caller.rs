//! Who asks: a key that clients choose themselves counts for one caller.
//!
//! Two callers may send the same key, by chance or on purpose, and neither must get the other's response.
//! So a caller is what a front door has verified, or the credential that was sent; a request that shows
//! neither is refused, unless the function says what else to go by.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use lambda_http::{
    Request, RequestExt as _,
    aws_lambda_events::apigw::{
        ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer,
        ApiGatewayRequestAuthorizerIamDescription,
    },
    http::{
        HeaderName, HeaderValue,
        header::{AUTHORIZATION, COOKIE},
    },
    request::RequestContext,
};
use serde_json::Value;

/// How the caller of a request is found.
#[derive(Clone)]
pub(super) enum Callers {
    /// By what the front door verified, or by the `Authorization` header.
    Known,
    /// By a header that the function names.
    Header(HeaderName),
    /// By the function itself.
    Said(Arc<Said>),
    /// All are one.
    One,
}

pub(super) type Said = dyn Fn(&Request) -> Option<String> + Send + Sync;

/// For whom a key counts.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) name: String,
    /// Whether several people may have this name, who must not get each other's cookies.
    pub(super) is_shared: bool,
}

/// Why a request has no caller. Names the remedy, and nothing of the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unknown {
    /// All users of an identity pool have one role and one session name.
    #[error(
        "it was signed with the credentials of a Cognito identity pool and has no identity id; \
         say who asks with `.caller(..)`"
    )]
    CognitoIdentity,
    /// CloudFront signs with credentials of its own, and so does a function at its edge.
    #[error(
        "it was signed by a CloudFront distribution, for all of its viewers alike; say who asks with \
         `.caller(..)` or `.caller_from_header(..)`, or, where nobody is to be told apart, \
         `.all_callers_are_one()`"
    )]
    Distribution,
    /// A session that is named after a person, in a role that others have, too.
    #[error(
        "it was signed in a role session that is named like an e-mail address, so the role seems to be \
         shared by people; say who asks with `.caller(..)`"
    )]
    SharedRole,
    /// The authorizer let the request pass and says nothing of who sent it.
    #[error(
        "its authorizer names nobody (no `iss` and `sub`, no `principalId` of the caller's own); let \
         the authorizer put `principalId` into its context, or say who asks with `.caller(..)`"
    )]
    Authorizer,
    #[error("its `Authorization` header is there twice")]
    Repeated,
    #[error(
        "its `Authorization` header is signed anew for each attempt, or of a scheme that is not known \
         to stay the same; say who asks with `.caller(..)`"
    )]
    Scheme,
    #[error(
        "it has cookies and no credential; a `Cookie` header changes between attempts: read the \
         session in `.caller(..)`"
    )]
    Cookies,
    #[error(
        "no authorizer names its caller, and it has no `Authorization` header; where other headers \
         say who asks, name one with `.caller_from_header(..)`, or read them in `.caller(..)`; where \
         nobody is to be told apart, say `.all_callers_are_one()`"
    )]
    Anonymous,
    #[error("it has no header `{0}`, or several; the function takes its caller from that")]
    Header(HeaderName),
    #[error("it has a header `{0}`, and is not from a load balancer, which alone sets that")]
    NotFromLoadBalancer(HeaderName),
    #[error("`.caller(..)` named nobody")]
    NotSaid,
    #[error("`.caller(..)` panicked")]
    Panicked,
}

impl Unknown {
    /// Whether the function or its front door has to be changed, whatever a client sends.
    pub(super) const fn is_the_functions(&self) -> bool {
        matches!(
            self,
            Self::CognitoIdentity
                | Self::Distribution
                | Self::SharedRole
                | Self::Authorizer
                | Self::Panicked
        )
    }
}

impl Callers {
    /// The caller of a request; `None` if all are one.
    pub(super) fn of(&self, request: &Request) -> Result<Option<Caller>, Unknown> {
        match self {
            Self::One => Ok(None),
            Self::Known => known(request).map(Some),
            Self::Header(name) => in_header(request, name).map(Some),
            Self::Said(said) => match catch_unwind(AssertUnwindSafe(|| said(request))) {
                Ok(Some(name)) if !name.is_empty() => Ok(Some(Caller { name, is_shared: false })),
                Ok(_) => Err(Unknown::NotSaid),
                Err(_) => Err(Unknown::Panicked),
            },
        }
    }
}

/// The caller as the front door knows it; else the credential that was sent, which the function checks,
/// if anyone: two credentials are two callers.
fn known(request: &Request) -> Result<Caller, Unknown> {
    let vouched = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV1(v1)) => older(v1, request)?,
        Some(RequestContext::ApiGatewayV2(v2)) => match &v2.authorizer {
            Some(authorizer) => http(authorizer, request)?,
            None => Vouched::ForNothing,
        },
        _ => Vouched::ForNothing,
    };
    match (vouched, credential(request)) {
        (Vouched::For(caller), _) => Ok(caller),
        (_, Ok(credential)) => Ok(credential),
        (Vouched::ForSomebody, Err(_)) => Err(Unknown::Authorizer),
        (Vouched::ForNothing, Err(unknown)) => Err(unknown),
    }
}

/// What an authorizer said.
enum Vouched {
    For(Caller),
    /// It let the request pass, and does not say whose it is.
    ForSomebody,
    /// There is none.
    ForNothing,
}

/// A REST API, or an HTTP API that sends the older form.
fn older(context: &ApiGatewayProxyRequestContext, request: &Request) -> Result<Vouched, Unknown> {
    let identity = &context.identity;
    if let Some(id) = filled(identity.cognito_identity_id.as_deref()) {
        return Ok(Vouched::For(named("cognito", id)));
    }
    let fields = &context.authorizer.fields;
    let by_authorizer =
        subject(fields.get("claims")).or_else(|| principal(fields.get("principalId")));
    if let Some(caller) = by_authorizer {
        return Ok(Vouched::For(caller));
    }
    if let Some(arn) = filled(identity.user_arn.as_deref()) {
        // Edge-optimized REST APIs have a distribution of AWS's own in front, which adds the header and
        // passes the client's signature on.
        if !is_rest(context) {
            not_for_viewers(request)?;
        }
        return iam(arn).map(Vouched::For);
    }
    // A context in which everything is `null` is what an API without an authorizer sends.
    let vouched = fields.values().any(|field| !field.is_null());
    Ok(if vouched { Vouched::ForSomebody } else { Vouched::ForNothing })
}

/// Whether it is a REST API, whose resources have ids of letters and digits. In their place HTTP APIs put
/// the key of the route (`POST /charges`, `$default`) or nothing.
fn is_rest(context: &ApiGatewayProxyRequestContext) -> bool {
    let id = filled(context.resource_id.as_deref());
    id.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// An HTTP API or a function URL.
fn http(authorizer: &ApiGatewayRequestAuthorizer, request: &Request) -> Result<Vouched, Unknown> {
    if let Some(iam) = &authorizer.iam {
        return signed(iam, request).map(Vouched::For);
    }
    if let Some(jwt) = &authorizer.jwt {
        let claim = |name| jwt.claims.get(name).map(String::as_str);
        let caller = issued(claim("iss"), claim("sub"));
        return Ok(caller.map_or(Vouched::ForSomebody, Vouched::For));
    }
    // What a Lambda authorizer puts into its context is its own affair; these two names are taken for
    // what they are in REST APIs.
    let fields = &authorizer.fields;
    let caller = subject(fields.get("claims")).or_else(|| principal(fields.get("principalId")));
    let nobody = if fields.is_empty() { Vouched::ForNothing } else { Vouched::ForSomebody };
    Ok(caller.map_or(nobody, Vouched::For))
}

/// What CloudFront adds to each request that it sends on.
const CLOUDFRONT: HeaderName = HeaderName::from_static("x-amz-cf-id");

fn signed(
    iam: &ApiGatewayRequestAuthorizerIamDescription,
    request: &Request,
) -> Result<Caller, Unknown> {
    let cognito = iam.cognito_identity.as_ref();
    if let Some(id) = cognito.and_then(|cognito| filled(cognito.identity_id.as_deref())) {
        return Ok(named("cognito", id));
    }
    not_for_viewers(request)?;
    self::iam(iam.user_arn.as_deref().unwrap_or_default())
}

/// Refuses what came through a distribution: the signature is that of the distribution or of a function at
/// its edge, as good as always.
fn not_for_viewers(request: &Request) -> Result<(), Unknown> {
    if request.headers().contains_key(CLOUDFRONT) { Err(Unknown::Distribution) } else { Ok(()) }
}

/// The session name that every user of an identity pool has.
const COGNITO_SESSION: &str = "CognitoIdentityCredentials";
/// The role in which CloudFront signs for a distribution with an origin access control.
const ORIGIN_ACCESS: &str = "OriginAccessControlRole";
/// How the roles of IAM Identity Center begin. Their session is named after the user.
const IDENTITY_CENTER: &str = "AWSReservedSSO_";

/// An IAM identity: a user or, of an assumed role, the role. The name of a role's session is chosen by
/// whoever assumes it, and another for each task of a service, each of which may send the next attempt.
fn iam(arn: &str) -> Result<Caller, Unknown> {
    if !arn.starts_with("arn:") {
        return Err(Unknown::Authorizer);
    }
    let role = arn.split_once(":assumed-role/").and_then(|(account, role)| {
        let (role, session) = role.split_once('/')?;
        Some((account, role, session))
    });
    match role {
        Some((_, _, COGNITO_SESSION)) => Err(Unknown::CognitoIdentity),
        Some((_, ORIGIN_ACCESS, _)) => Err(Unknown::Distribution),
        Some((_, role, _)) if role.starts_with(IDENTITY_CENTER) => Ok(named("iam", arn)),
        // With web identities the client chooses the name, so it tells nobody apart either.
        Some((_, _, session)) if session.contains('@') => Err(Unknown::SharedRole),
        Some((account, role, _)) => {
            Ok(Caller { is_shared: true, ..named("role", &format!("{account} {role}")) })
        }
        None => Ok(named("iam", arn)),
    }
}

/// The subject of a token: nobody without its issuer, by whom alone it is unique.
fn issued(issuer: Option<&str>, subject: Option<&str>) -> Option<Caller> {
    let (issuer, subject) = (filled(issuer)?, filled(subject)?);
    Some(named("subject", &format!("{}:{issuer}{subject}", issuer.len())))
}

fn subject(claims: Option<&Value>) -> Option<Caller> {
    let claim = |name| claims?.get(name)?.as_str();
    issued(claim("iss"), claim("sub"))
}

/// What AWS's sample authorizers return for everybody. An authorizer that was made from one of them and
/// still does names nobody.
const SAMPLES: [&str; 4] = ["user", "me", "user|a1b2c3d4", "abcdef"];

fn principal(id: Option<&Value>) -> Option<Caller> {
    let id = filled(id?.as_str())?;
    (!SAMPLES.contains(&id)).then(|| named("principal", id))
}

/// Schemes whose credential stays the same from one attempt to the next, until it is renewed. Others
/// sign each request (`AWS4-HMAC-SHA256`, `Digest`, `OAuth`, ...): every attempt would be a new caller's.
const LASTING: [&str; 5] = ["basic", "bearer", "dpop", "token", "apikey"];

/// The credential that was sent to be recognised by.
fn credential(request: &Request) -> Result<Caller, Unknown> {
    let mut sent = request.headers().get_all(AUTHORIZATION).iter();
    let value = match (sent.next(), sent.next()) {
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(Unknown::Repeated),
        (None, _) if request.headers().contains_key(COOKIE) => return Err(Unknown::Cookies),
        (None, _) => return Err(Unknown::Anonymous),
    };
    let text = value.as_bytes().trim_ascii();
    let mut words = text.splitn(2, |byte| *byte == b' ');
    let scheme = words.next().unwrap_or_default();
    if scheme.is_empty() {
        return Err(Unknown::Anonymous);
    }
    // One word alone is a token.
    let lasts = LASTING.iter().any(|name| scheme.eq_ignore_ascii_case(name.as_bytes()));
    if words.next().is_some() && !lasts {
        return Err(Unknown::Scheme);
    }
    Ok(named("credential", &escaped(value)))
}

/// What only a load balancer sets; from elsewhere it is a client's own words.
const LOAD_BALANCER: &str = "x-amzn-oidc-";

fn in_header(request: &Request, name: &HeaderName) -> Result<Caller, Unknown> {
    let from_load_balancer = matches!(request.request_context_ref(), Some(RequestContext::Alb(_)));
    if name.as_str().starts_with(LOAD_BALANCER) && !from_load_balancer {
        return Err(Unknown::NotFromLoadBalancer(name.clone()));
    }
    let mut sent = request.headers().get_all(name).iter();
    match (sent.next(), sent.next()) {
        (Some(value), None) if !value.is_empty() => Ok(named("header", &escaped(value))),
        _ => Err(Unknown::Header(name.clone())),
    }
}

fn escaped(value: &HeaderValue) -> String {
    value.as_bytes().escape_ascii().to_string()
}

fn named(kind: &str, name: &str) -> Caller {
    Caller { name: format!("{kind} {name}"), is_shared: false }
}

fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
