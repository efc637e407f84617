//! When two requests are the same: the scope of a key, and the fingerprint of a request.

use lambda_http::{Request, RequestExt as _, http::header::HOST, request::RequestContext};
use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_keys::{Digest, KeyFormat};

use super::multipart;

/// The scope of a key: tenant and caller. The route is not a part of it, because the name of a
/// route changes with the API's configuration, and a second attempt by another route would then be
/// a second payment. A used key with another path is refused, because [`target`] differs, unless
/// the path is a part of the key.
pub(super) fn scope(request: &Request, caller: Option<&str>, by_path: bool) -> String {
    let mut scope = Digest::new(b"lambda-idempotency http scope 2");
    let tenant = request.lambda_context_ref().and_then(|context| context.tenant_id.as_deref());
    for part in [tenant, caller] {
        scope.part(if part.is_some() { b"1" } else { b"0" });
        scope.part(part.unwrap_or_default().as_bytes());
    }
    if by_path {
        scope.part(path(request).as_bytes());
    }
    scope.hex()
}

/// The path that the client sent. If the event does not contain it, the path lacks the stage;
/// requests that then wrongly share a key are refused because their [`target`] differs.
fn path(request: &Request) -> &str {
    let (sent, _) = sent(request);
    let raw = Some(request.raw_http_path()).filter(|path| !path.is_empty());
    sent.or(raw).unwrap_or_else(|| request.uri().path())
}

/// What a request asks for. It is always compared.
pub(super) fn target(request: &Request, format: &KeyFormat) -> String {
    let uri = request.uri();
    let mut target = format.digest(b"lambda-idempotency http target 2");
    target.part(request.method().as_str().as_bytes());
    // A function may serve several hosts, with different customers.
    target.part(host(request).to_ascii_lowercase().as_bytes());
    target.part(base_path(request).as_bytes());
    // The path of the event, because the URL that `lambda_http` makes from it may lose parts (after
    // a `#`, `..`, tabs) and begins with the stage.
    let path = Some(request.raw_http_path()).filter(|path| !path.is_empty());
    target.part(path.unwrap_or_else(|| uri.path()).as_bytes());
    target.part(query(request).as_bytes());
    target.hex()
}

/// Outside of Lambda, the URL of a request has only its path.
fn host(request: &Request) -> &str {
    let named = || request.headers().get(HOST).and_then(|host| host.to_str().ok());
    request.uri().host().or_else(named).unwrap_or_default()
}

/// The path that the client sent, in which API Gateway keeps the stage or the base path of a custom
/// domain. If the event does not contain it, the stage, which may have been removed from the other
/// path. A custom domain that is switched to another stage is the same service to the client.
fn base_path(request: &Request) -> &str {
    let (path, stage) = sent(request);
    path.or(stage).unwrap_or_default()
}

/// Path and stage from an event of API Gateway.
fn sent(request: &Request) -> (Option<&str>, Option<&str>) {
    let (path, stage) = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV1(v1)) => (v1.path.as_deref(), v1.stage.as_deref()),
        Some(RequestContext::ApiGatewayV2(v2)) => (v2.http.path.as_deref(), v2.stage.as_deref()),
        _ => (None, None),
    };
    (path.filter(|path| !path.is_empty()), stage)
}

/// The fingerprint of a request with its whole body.
pub(super) fn with_body(target: &str, request: &Request, format: &KeyFormat) -> Fingerprint {
    let mut fingerprint = format.digest(b"lambda-idempotency http body 1");
    fingerprint.part(target.as_bytes());
    multipart::digest(request, &mut fingerprint);
    Fingerprint::new(fingerprint.hex())
}

/// The fingerprint of a request with the part of its body that an expression selects.
pub(super) fn with_selection(
    target: &str,
    selection: &Fingerprint,
    format: &KeyFormat,
) -> Fingerprint {
    let mut fingerprint = format.digest(b"lambda-idempotency http selection 1");
    fingerprint.part(target.as_bytes());
    fingerprint.part(selection.as_str().as_bytes());
    Fingerprint::new(fingerprint.hex())
}

/// Whether the query has lost bytes: `lambda_http` decodes those of load balancers and VPC Lattice, and puts one character in the
/// place of all bytes that are not UTF-8, so that different queries would be equal.
pub(super) fn has_lost_query(request: &Request) -> bool {
    let is_decoded = matches!(
        request.request_context_ref(),
        Some(RequestContext::Alb(_) | RequestContext::VpcLattice(_))
    );
    let query = request.uri().query().unwrap_or_default();
    is_decoded && (query.contains('\u{fffd}') || query.contains("%EF%BF%BD"))
}

/// The query with its parameters sorted by name: REST APIs and load balancers deliver them as a
/// map, whose order differs each time.
fn query(request: &Request) -> String {
    let query = request.uri().query().unwrap_or_default();
    let mut parameters: Vec<&str> = query.split('&').collect();
    // The sort is stable: the values of one name keep their order.
    parameters.sort_by_key(|parameter| parameter.split('=').next());
    parameters.join("&")
}
