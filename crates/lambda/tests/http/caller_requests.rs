//! Requests of callers, and whether two of them share a response.

use lambda_http::{
    Request, RequestExt as _,
    aws_lambda_events::{
        alb::AlbTargetGroupRequestContext,
        apigw::{
            ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer,
            ApiGatewayV2httpRequestContext,
        },
    },
    request::RequestContext,
};
use lambda_idempotency::http::HttpLayer;
use serde_json::{Value, json};

use crate::support::{Answer, World, charges, post};

/// A request that does not identify its caller.
pub(crate) fn bare() -> Request {
    let mut request = post("k-1", "");
    request.headers_mut().remove("authorization");
    request
}

pub(crate) fn sent(header: &'static str, value: &str) -> Request {
    let mut request = bare();
    request.headers_mut().insert(header, value.parse().unwrap());
    request
}

/// A request through an HTTP API or a function URL, with this answer of the authorizer.
pub(crate) fn http_api(authorizer: Value) -> Request {
    let mut context = ApiGatewayV2httpRequestContext::default();
    context.authorizer = serde_json::from_value(authorizer).unwrap();
    bare().with_request_context(RequestContext::ApiGatewayV2(context))
}

pub(crate) fn token(issuer: &str, subject: &str) -> Request {
    http_api(json!({ "jwt": { "claims": { "iss": issuer, "sub": subject } } }))
}

pub(crate) fn lambda(context: Value) -> Request {
    http_api(json!({ "lambda": context }))
}

pub(crate) fn signed(arn: &str, cognito: Option<&str>) -> Request {
    let cognito = cognito.map(|id| json!({ "amr": ["authenticated"], "identityId": id }));
    http_api(json!({ "iam": { "userArn": arn, "cognitoIdentity": cognito } }))
}

/// A request through a REST API with this authorizer and identity.
pub(crate) fn rest(authorizer: Value, identity: Value) -> Request {
    let mut context = ApiGatewayProxyRequestContext::default();
    let mut fields = ApiGatewayRequestAuthorizer::default();
    fields.fields = serde_json::from_value(authorizer).unwrap();
    context.authorizer = fields;
    context.identity = serde_json::from_value(identity).unwrap();
    bare().with_request_context(RequestContext::ApiGatewayV1(context))
}

pub(crate) fn load_balancer(mut request: Request, headers: &[(&'static str, &str)]) -> Request {
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    let context = AlbTargetGroupRequestContext::default();
    request.with_request_context(RequestContext::Alb(context))
}

/// Whether the second of two requests gets the response of the first.
pub(crate) async fn shares_by(
    layer: &HttpLayer,
    world: &World,
    first: Request,
    second: Request,
) -> bool {
    assert_eq!(world.answer(layer, first).await.status, 201);
    let second = world.answer(layer, second).await;
    assert_eq!(second.status, 201, "{}", second.body);
    assert_eq!(world.calls(), if second.replayed { 1 } else { 2 });
    second.replayed
}

pub(crate) async fn shares(first: Request, second: Request) -> bool {
    let world = World::new();
    shares_by(&world.layer(&charges()), &world, first, second).await
}

pub(crate) async fn refused_by(layer: &HttpLayer, world: &World, request: Request) -> Answer {
    let answer = world.answer(layer, request).await;
    assert_eq!(answer.kind(), "caller");
    assert_eq!((world.calls(), world.store.write_calls()), (0, 0));
    answer
}

/// The status with which a request is refused because its caller is not known.
pub(crate) async fn refused(request: Request) -> u16 {
    let world = World::new();
    refused_by(&world.layer(&charges()), &world, request).await.status
}
