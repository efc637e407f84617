//! What makes two requests the same: what a key counts for, and what is compared under it.

use lambda_http::{Request, RequestExt as _, request::RequestContext};
use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_keys::{Digest, KeyFormat};

use super::multipart;

/// For whom a key counts: tenant and caller. Not for which route: what a front door calls a route changes
/// with its configuration, and a second attempt by another way would be another payment. A key that comes
/// with another path is refused, since [`target`] differs; unless the function says that each path has
/// keys of its own.
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

/// The path that the client sent. Where the event does not have it, without the stage: keys that are the
/// same then, and should not be, are refused for their [`target`].
fn path(request: &Request) -> &str {
    let (sent, _) = sent(request);
    let raw = Some(request.raw_http_path()).filter(|path| !path.is_empty());
    sent.or(raw).unwrap_or_else(|| request.uri().path())
}

/// What a request asks for. It is compared whatever else is.
pub(super) fn target(request: &Request, format: &KeyFormat) -> String {
    let uri = request.uri();
    let mut target = format.digest(b"lambda-idempotency http target 2");
    target.part(request.method().as_str().as_bytes());
    // Where a function serves the customers of several hosts, each is another place.
    target.part(uri.host().unwrap_or_default().to_ascii_lowercase().as_bytes());
    target.part(place(request).as_bytes());
    // As the event has it: `lambda_http` makes a URL of it, which may lose something (what follows a
    // `#`, `..`, tabs), and puts the stage in front.
    let path = Some(request.raw_http_path()).filter(|path| !path.is_empty());
    target.part(path.unwrap_or_else(|| uri.path()).as_bytes());
    target.part(query(request).as_bytes());
    target.hex()
}

/// The path that the client sent, in which API Gateway leaves the stage or the base path of a custom
/// domain. Where the event does not have it, the stage, which may have been cut off. A custom domain that
/// is switched to another stage is the same place to the client.
fn place(request: &Request) -> &str {
    let (path, stage) = sent(request);
    path.or(stage).unwrap_or_default()
}

/// Path and stage, as an event of API Gateway has them.
fn sent(request: &Request) -> (Option<&str>, Option<&str>) {
    let (path, stage) = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV1(v1)) => (v1.path.as_deref(), v1.stage.as_deref()),
        Some(RequestContext::ApiGatewayV2(v2)) => (v2.http.path.as_deref(), v2.stage.as_deref()),
        _ => (None, None),
    };
    (path.filter(|path| !path.is_empty()), stage)
}

/// The fingerprint of a request whose whole body counts.
pub(super) fn with_body(target: &str, request: &Request, format: &KeyFormat) -> Fingerprint {
    let mut fingerprint = format.digest(b"lambda-idempotency http body 1");
    fingerprint.part(target.as_bytes());
    multipart::digest(request, &mut fingerprint);
    Fingerprint::new(fingerprint.hex())
}

/// The fingerprint of a request of whose body only that counts which an expression selects.
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

/// The query, its parameters in the order of their names: REST APIs and load balancers hand them over
/// in a map, out of which they come in another order each time.
fn query(request: &Request) -> String {
    let query = request.uri().query().unwrap_or_default();
    let mut parameters: Vec<&str> = query.split('&').collect();
    // Stable: the values of one name stay in their order.
    parameters.sort_by_key(|parameter| parameter.split('=').next());
    parameters.join("&")
}
