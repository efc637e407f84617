//! The form in which the store keeps responses.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use lambda_http::{
    Body,
    http::{
        HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
        header::{
            CONNECTION, DATE, PROXY_AUTHENTICATE, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
            UPGRADE,
        },
    },
};
use serde::{Deserialize, Serialize};

/// The header that distinguishes a replay from the first response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Whether replays set the cookies of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cookies {
    /// A replay sets them again.
    Kept,
    /// A replay may go to another caller, or to one that nobody has verified. Neither must get the
    /// session.
    Dropped,
}

/// A complete response, except for cookies that may belong to another caller.
#[derive(Deserialize, Serialize)]
struct KeptResponse {
    status: u16,
    /// Each byte of a value is stored as one character, because values need not be UTF-8.
    headers: Vec<(String, String)>,
    body: KeptBody,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum KeptBody {
    Empty,
    Text(String),
    Base64(String),
}

/// Headers of one connection (RFC 9110, section 7.6.1), and when a response was sent: whoever sends a replay sets its own.
const OF_EXCHANGE: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    DATE,
];

/// Whether replays have this header.
fn is_replayed(name: &HeaderName, cookies: Cookies, not_replayed: &[HeaderName]) -> bool {
    let is_own = *name != SET_COOKIE || cookies == Cookies::Kept;
    is_own && !OF_EXCHANGE.contains(name) && !not_replayed.contains(name)
}

/// The headers that `Connection` names, which belong to the connection, too.
fn of_connection(headers: &HeaderMap) -> Vec<&str> {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).map(str::trim).collect()
}

/// The response as JSON text, with its cookies if they are the caller's own; `None` if it cannot be
/// serialized.
pub(super) fn to_json(
    response: &Response<Body>,
    cookies: Cookies,
    not_replayed: &[HeaderName],
) -> Option<String> {
    let named = of_connection(response.headers());
    let is_kept = |name: &HeaderName| {
        is_replayed(name, cookies, not_replayed)
            && !named.iter().any(|option| option.eq_ignore_ascii_case(name.as_str()))
    };
    let headers = response.headers().iter().filter(|(name, _)| is_kept(name));
    let headers = headers.map(|(name, value)| {
        (name.to_string(), value.as_bytes().iter().copied().map(char::from).collect())
    });
    let body = match response.body() {
        Body::Empty => KeptBody::Empty,
        Body::Text(text) => KeptBody::Text(text.clone()),
        Body::Binary(bytes) => KeptBody::Base64(BASE64_STANDARD.encode(bytes)),
        _ => return None,
    };
    let status = response.status().as_u16();
    serde_json::to_string(&KeptResponse { status, headers: headers.collect(), body }).ok()
}

/// The response from its JSON text, marked as a replay; `None` if the text is not a response. A layer
/// with other settings may have kept the cookies.
pub(super) fn replay(
    json: &str,
    cookies: Cookies,
    not_replayed: &[HeaderName],
) -> Option<Response<Body>> {
    let kept: KeptResponse = serde_json::from_str(json).ok()?;
    let mut response = Response::new(match kept.body {
        KeptBody::Empty => Body::Empty,
        KeptBody::Text(text) => Body::Text(text),
        KeptBody::Base64(text) => Body::Binary(BASE64_STANDARD.decode(text).ok()?),
    });
    *response.status_mut() = StatusCode::from_u16(kept.status).ok()?;
    for (name, value) in kept.headers {
        let bytes: Vec<u8> = value.chars().map(u8::try_from).collect::<Result<_, _>>().ok()?;
        let name: HeaderName = name.parse().ok()?;
        if !is_replayed(&name, cookies, not_replayed) {
            continue;
        }
        response.headers_mut().append(name, HeaderValue::from_bytes(&bytes).ok()?);
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Some(response)
}

/// Whether a response answers later requests by default. Responses that result from the work do,
/// whatever their status. Responses with which a handler rejects a request before it starts the
/// work do not; such a request can be sent again with the same key.
pub(super) fn is_kept_by_default(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::CONFLICT
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
            | StatusCode::TOO_EARLY
            | StatusCode::PRECONDITION_REQUIRED
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: Body) -> Response<Body> {
        Response::builder()
            .status(201)
            .header("content-type", "application/json")
            .header("set-cookie", "a=1")
            .header("set-cookie", "b=2")
            .header("x-odd", HeaderValue::from_bytes(&[0xe9, 0xff]).unwrap())
            .body(body)
            .unwrap()
    }

    #[test]
    fn status_headers_and_body_are_replayed_byte_for_byte() {
        for body in
            [Body::Empty, Body::Text("{\"ok\":\"é\"}".into()), Body::Binary(vec![0, 255, 10])]
        {
            let first = response(body);
            let mut again =
                replay(&to_json(&first, Cookies::Kept, &[]).unwrap(), Cookies::Kept, &[]).unwrap();
            assert_eq!(again.headers_mut().remove(REPLAYED).unwrap(), "true");
            assert_eq!(again.status(), first.status());
            assert_eq!(again.headers(), first.headers());
            assert_eq!(again.body(), first.body());
        }
    }

    #[test]
    fn cookies_that_may_belong_to_another_caller_are_dropped() {
        let first = response(Body::Empty);
        for (kept, replayed) in [
            (Cookies::Dropped, Cookies::Kept),
            (Cookies::Kept, Cookies::Dropped),
            (Cookies::Dropped, Cookies::Dropped),
        ] {
            let again = replay(&to_json(&first, kept, &[]).unwrap(), replayed, &[]).unwrap();
            assert_eq!(again.headers().get(SET_COOKIE), None);
            assert_eq!(again.headers().get("x-odd"), first.headers().get("x-odd"));
        }
    }

    #[test]
    fn headers_of_an_exchange_are_not_replayed() {
        let mut first = response(Body::Empty);
        for (name, value) in [
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
            ("date", "Tue, 15 Nov 1994 08:12:31 GMT"),
            ("x-request-id", "r-1"),
        ] {
            first.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let request_id = [HeaderName::from_static("x-request-id")];
        for (kept, replayed) in [(&request_id[..], &[][..]), (&[], &request_id)] {
            let json = to_json(&first, Cookies::Kept, kept).unwrap();
            let again = replay(&json, Cookies::Kept, replayed).unwrap();
            let names: Vec<_> = again.headers().keys().map(HeaderName::as_str).collect();
            let left = ["content-type", "set-cookie", "x-odd", "idempotency-replayed"];
            assert!(left.iter().all(|name| names.contains(name)), "{names:?}");
            assert_eq!(names.len(), left.len(), "{names:?}");
        }
    }

    #[test]
    fn text_that_is_not_a_response_is_not_replayed() {
        for text in ["", "null", "{}", r#"{"status":99999,"headers":[],"body":"empty"}"#] {
            assert!(replay(text, Cookies::Kept, &[]).is_none(), "{text}");
        }
    }
}
