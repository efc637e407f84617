//! Who asks, and for what: the scope of a key that clients choose themselves.
//!
//! Two callers may send the same key, by chance or on purpose. Neither must get the other's result.

use lambda_http::{
    Request, RequestExt as _,
    aws_lambda_events::apigw::ApiGatewayRequestAuthorizer,
    http::{HeaderMap, header::AUTHORIZATION},
    request::RequestContext,
};
use serde_json::Value;

/// The caller, as the front door knows it: the subject of a verified token, the IAM identity, the
/// principal of a Lambda authorizer. Where it knows none, the credentials that were sent.
pub(super) fn caller(request: &Request) -> Option<String> {
    let context = request.request_context_ref();
    let known = match context {
        Some(RequestContext::ApiGatewayV1(v1)) => {
            authorized(&v1.authorizer).or_else(|| named("iam", v1.identity.user_arn.as_deref()))
        }
        Some(RequestContext::ApiGatewayV2(v2)) => v2.authorizer.as_ref().and_then(authorized),
        _ => None,
    };
    known.or_else(|| sent(request.headers()))
}

/// The route of the request, if its source names one; else its path.
pub(super) fn route(request: &Request) -> &str {
    let route = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV1(v1)) => v1.resource_path.as_deref(),
        Some(RequestContext::ApiGatewayV2(v2)) => v2.route_key.as_deref(),
        _ => None,
    };
    // A route for everything says nothing.
    let specific = route.filter(|route| !route.contains("$default") && !route.contains("+}"));
    specific.unwrap_or_else(|| request.uri().path())
}

fn authorized(authorizer: &ApiGatewayRequestAuthorizer) -> Option<String> {
    if let Some(jwt) = &authorizer.jwt {
        let claim = |name| jwt.claims.get(name).map(String::as_str);
        return subject(claim("iss"), claim("sub"));
    }
    if let Some(iam) = &authorizer.iam {
        return named("iam", iam.user_arn.as_deref());
    }
    // A Cognito authorizer of a REST API passes claims, a Lambda authorizer its principal.
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let claims = authorizer.fields.get("claims");
    let claim = |name| text(claims.and_then(|claims| claims.get(name)));
    subject(claim("iss").as_deref(), claim("sub").as_deref())
        .or_else(|| named("principal", text(authorizer.fields.get("principalId")).as_deref()))
}

fn subject(issuer: Option<&str>, subject: Option<&str>) -> Option<String> {
    let subject = subject.filter(|subject| !subject.is_empty())?;
    let issuer = issuer.unwrap_or_default();
    Some(format!("subject {}:{issuer}{subject}", issuer.len()))
}

fn named(kind: &str, name: Option<&str>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| format!("{kind} {name}"))
}

/// What the caller sent to be recognised by; verified by the function itself, if at all.
fn sent(headers: &HeaderMap) -> Option<String> {
    let value = |name: &str| headers.get(name).map(|value| value.as_bytes().escape_ascii());
    let oidc = value("x-amzn-oidc-identity").map(|identity| format!("oidc {identity}"));
    let credentials = || value(AUTHORIZATION.as_str()).map(|sent| format!("credentials {sent}"));
    let api_key = || value("x-api-key").map(|sent| format!("api key {sent}"));
    oidc.or_else(credentials).or_else(api_key)
}
