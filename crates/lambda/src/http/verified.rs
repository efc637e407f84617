//! The identity that API Gateway, the function URL or VPC Lattice verified, as the caller of a request.

use lambda_http::{
    Request, RequestExt as _,
    aws_lambda_events::{
        apigw::{
            ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer,
            ApiGatewayRequestAuthorizerIamDescription,
        },
        vpc_lattice::VpcLatticeRequestV2Context,
    },
    http::HeaderName,
    request::RequestContext,
};
use serde_json::Value;

use super::caller::{Caller, UnknownCaller};

/// What the authorizer verified.
pub(super) enum Verified {
    Caller(Caller),
    /// It accepted the request, but does not name the caller.
    Unnamed,
    /// There is no authorizer.
    Nothing,
}

/// What the authorizer of the API or of the function URL, or the auth policy of VPC Lattice verified.
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
