//! Bodies: read whole, and given on in the type of the service.

use std::any::Any;

use http_body_util::BodyExt as _;
use lambda_http::{
    Body, IntoResponse,
    http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE},
};

/// The value, if its type is the other one.
fn same<T: 'static, U: 'static>(value: &mut Option<T>) -> Option<U> {
    let value: &mut dyn Any = value;
    value.downcast_mut::<Option<U>>()?.take()
}

/// All bytes of a body; `None` if it ends with an error. A body of `lambda_http` stays as it is.
async fn whole<B>(body: B) -> Option<Body>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    let mut body = Some(body);
    if let Some(read) = same::<B, Body>(&mut body) {
        return Some(read);
    }
    let bytes = Vec::from(body?.collect().await.ok()?.to_bytes());
    Some(match String::from_utf8(bytes) {
        Ok(text) if text.is_empty() => Body::Empty,
        Ok(text) => Body::Text(text),
        Err(binary) => Body::Binary(binary.into_bytes()),
    })
}

/// The body in another type. A body of `lambda_http` stays as it is.
pub(super) fn given_on<B: From<Vec<u8>> + 'static>(body: Body) -> B {
    let mut body = Some(body);
    same::<Body, B>(&mut body).unwrap_or_else(|| {
        B::from(match body {
            Some(Body::Text(text)) => text.into_bytes(),
            Some(Body::Binary(bytes)) => bytes,
            _ => Vec::new(),
        })
    })
}

/// A request whose body was read; `None` if the body ends with an error.
pub(super) async fn whole_request<B>(request: Request<B>) -> Option<Request<Body>>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    let (parts, body) = request.into_parts();
    Some(Request::from_parts(parts, whole(body).await?))
}

/// A response whose body was read; its status if the body ends with an error. A response with a body of
/// type `B` is read as it is, because `lambda_http` would decode its text.
pub(super) async fn whole_response<R, B>(response: R) -> Result<Response<Body>, StatusCode>
where
    R: IntoResponse + Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    let mut response = Some(response);
    match same::<R, Response<B>>(&mut response) {
        Some(own) => {
            let (parts, body) = own.into_parts();
            let body = whole(body).await.ok_or(parts.status)?;
            Ok(Response::from_parts(parts, body))
        }
        // `same` takes it only if it has this type.
        None => {
            Ok(converted(response.ok_or(StatusCode::INTERNAL_SERVER_ERROR)?.into_response().await))
        }
    }
}

/// A response that `lambda_http` has converted: the text of its body is UTF-8 then, whatever the service wrote, and is not to be
/// decoded once more.
fn converted(mut response: Response<Body>) -> Response<Body> {
    let (Body::Text(_), Some(content_type)) =
        (response.body(), response.headers().get(CONTENT_TYPE))
    else {
        return response;
    };
    let mut parts = content_type.to_str().unwrap_or_default().split(';');
    let mut new = parts.next().unwrap_or_default().trim().to_owned();
    let mut is_decoded = false;
    for parameter in parts {
        let name = parameter.split('=').next().unwrap_or_default().trim();
        let is_charset = name.eq_ignore_ascii_case("charset");
        is_decoded |= is_charset;
        let parameter = if is_charset { "charset=utf-8" } else { parameter.trim() };
        new = format!("{new}; {parameter}");
    }
    if is_decoded && let Ok(new) = HeaderValue::try_from(new) {
        response.headers_mut().insert(CONTENT_TYPE, new);
    }
    response
}

/// The response to a request that needs no key. A body of type `B` is not read, because it may be a
/// stream.
pub(super) async fn passed_on<R, B>(response: R) -> Option<Response<B>>
where
    R: IntoResponse + Send + 'static,
    B: From<Vec<u8>> + Send + 'static,
{
    let mut response = Some(response);
    match same::<R, Response<B>>(&mut response) {
        Some(own) => Some(own),
        None => Some(converted(response?.into_response().await).map(given_on)),
    }
}
