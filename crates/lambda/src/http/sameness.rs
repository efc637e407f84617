//! When two requests are the same: the scope of a key, and the fingerprint of a request.
//!
//! Clients make a new boundary of a `multipart/form-data` body for each attempt, so it is not a part of the fingerprint.

use lambda_http::{
    Request, RequestExt as _,
    http::header::{CONTENT_TYPE, HOST},
    request::RequestContext,
};
use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_keys::{Digest, KeyFormat};

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

/// The target of a request: method, host, path and query. It is always compared.
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
    add_body(request, &mut fingerprint);
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

/// Adds the body to a digest, without the boundary if it is `multipart`.
fn add_body(request: &Request, digest: &mut Digest) {
    let body: &[u8] = request.body();
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let multipart = content_type.and_then(|content_type| {
        let (kind, boundary) = boundary(content_type)?;
        Some((kind, sections(body, boundary.as_bytes())?))
    });
    match multipart {
        Some((kind, sections)) => {
            digest.part(kind.as_bytes());
            for section in sections {
                digest.part(section);
            }
        }
        None => {
            digest.part(b"");
            digest.part(body);
        }
    }
}

/// The media type in lower case and the boundary, if it is `multipart` and has one.
fn boundary(content_type: &str) -> Option<(String, String)> {
    let (kind, mut rest) = content_type.split_once(';')?;
    let kind = kind.trim().to_ascii_lowercase();
    if !kind.starts_with("multipart/") {
        return None;
    }
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (value, next) = after.split_once(';').unwrap_or((after, ""));
                (value.trim().to_owned(), next)
            }
        };
        if name.trim().eq_ignore_ascii_case("boundary") {
            return (!value.is_empty()).then_some((kind, value));
        }
        rest = next.trim_start().trim_start_matches(';');
    }
}

/// Reads a quoted string after its first quote; returns the rest, too.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.push(chars.next()?),
            plain => value.push(plain),
        }
    }
}

/// The bytes before, between and after the delimiters (RFC 2046, section 5.1.1); `None` if the body
/// does not have that form, and is compared as it is.
fn sections<'b>(body: &'b [u8], boundary: &[u8]) -> Option<Vec<&'b [u8]>> {
    let mut sections = Vec::new();
    let (mut section, mut line) = (0, 0);
    loop {
        let rest = body.get(line..)?;
        let end = rest.windows(2).position(|two| two == b"\r\n");
        let next = end.map(|end| line + end + 2);
        let text = rest.get(..end.unwrap_or(rest.len()))?;
        let behind = text.strip_prefix(b"--").and_then(|text| text.strip_prefix(boundary));
        if let Some(behind) = behind {
            let closing = behind.strip_prefix(b"--");
            let padding = closing.unwrap_or(behind);
            if padding.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
                // The line break before a delimiter belongs to it, so two delimiters cannot share
                // one. Before the first delimiter it may be missing.
                let before = if sections.is_empty() { line } else { line.checked_sub(2)? };
                sections.push(body.get(section..before)?);
                sections.push(padding);
                section = next.unwrap_or(body.len());
                if closing.is_some() {
                    sections.push(body.get(section..)?);
                    return Some(sections);
                }
            }
        }
        line = next?;
    }
}

#[cfg(test)]
mod tests {
    use lambda_http::Body;

    use super::*;

    fn digested(content_type: &str, body: &str) -> String {
        let request = lambda_http::http::Request::builder().header(CONTENT_TYPE, content_type);
        let mut of = Digest::new(b"test");
        add_body(&request.body(Body::from(body)).unwrap(), &mut of);
        of.hex()
    }

    fn form(boundary: &str, amount: &str) -> String {
        let part = format!("Content-Disposition: form-data; name=\"amount\"\r\n\r\n{amount}");
        format!("--{boundary}\r\n{part}\r\n--{boundary}\r\n\r\n--x\r\n--{boundary}--\r\n")
    }

    #[test]
    fn the_boundary_does_not_count_and_everything_else_does() {
        let first = digested("multipart/form-data; boundary=a", &form("a", "5"));
        let again =
            digested("Multipart/Form-Data; charset=utf-8; Boundary=\"b1 2\"", &form("b1 2", "5"));
        assert_eq!(first, again);
        for (content_type, body) in [
            ("multipart/form-data; boundary=a", form("a", "6")),
            ("multipart/mixed; boundary=a", form("a", "5")),
            ("multipart/form-data; boundary=a", form("a", "5") + "more"),
            (
                "multipart/form-data; boundary=a",
                form("a", "5").replace("\r\n--a\r\n", "\r\n\r\n--a\r\n"),
            ),
            ("multipart/form-data; boundary=a", form("a", "5").replace("--x", "--b")),
            ("text/plain; boundary=a", form("a", "5")),
            ("multipart/form-data", form("a", "5")),
        ] {
            assert_ne!(digested(content_type, &body), first, "{content_type} {body}");
        }
    }

    #[test]
    fn a_body_that_is_not_what_its_type_says_is_compared_as_it_is() {
        for body in ["", "--a", "--a\r\n", "a", "--a\r\n--a--", "--ab\r\nx\r\n--ab--", "--a--x\r\n"]
        {
            assert_eq!(sections(body.as_bytes(), b"a"), None, "{body:?}");
        }
        assert!(sections(b"--a--", b"a").is_some());
        for content_type in ["multipart/form-data; boundary=", "multipart/form-data; boundary=\"a"]
        {
            assert_eq!(boundary(content_type), None, "{content_type}");
        }
    }

    #[test]
    fn bodies_that_differ_in_line_breaks_only_are_told_apart() {
        let of = |body: &str| digested("multipart/mixed; boundary=a", body);
        let bodies =
            ["--a\r\n--a--", "--a\r\n\r\n--a--", "--a\r\n\r\n\r\n--a--", "\r\n--a\r\n\r\n--a--"];
        let digests: std::collections::HashSet<_> = bodies.into_iter().map(of).collect();
        assert_eq!(digests.len(), bodies.len());
    }
}
