//! Nobody gets another's response: what a key counts for.

use lambda_http::{
    Request, RequestExt as _,
    aws_lambda_events::apigw::{
        ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer,
        ApiGatewayRequestAuthorizerIamDescription, ApiGatewayRequestAuthorizerJwtDescription,
        ApiGatewayV2httpRequestContext,
    },
    http::Method,
    request::RequestContext,
};
use serde_json::json;

use crate::support::{World, charges, post, request};

/// Whether the second of two requests is answered with the first's response.
async fn shares(first: Request, second: Request) -> bool {
    let world = World::new();
    let layer = world.layer(&charges());
    assert_eq!(world.answer(&layer, first).await.status, 201);
    let second = world.answer(&layer, second).await;
    assert_eq!(second.status, 201);
    assert_eq!(world.calls(), if second.replayed { 1 } else { 2 });
    second.replayed
}

fn with(authorizer: ApiGatewayRequestAuthorizer, route: Option<&str>) -> Request {
    let mut context = ApiGatewayV2httpRequestContext::default();
    context.authorizer = Some(authorizer);
    context.route_key = route.map(str::to_owned);
    post("k-1", "").with_request_context(RequestContext::ApiGatewayV2(context))
}

fn token(subject: &str, issuer: &str) -> ApiGatewayRequestAuthorizer {
    let mut jwt = ApiGatewayRequestAuthorizerJwtDescription::default();
    jwt.claims.insert("sub".to_owned(), subject.to_owned());
    jwt.claims.insert("iss".to_owned(), issuer.to_owned());
    let mut authorizer = ApiGatewayRequestAuthorizer::default();
    authorizer.jwt = Some(jwt);
    authorizer
}

fn rest(fields: serde_json::Value) -> Request {
    let mut context = ApiGatewayProxyRequestContext::default();
    context.authorizer.fields = serde_json::from_value(fields).unwrap();
    post("k-1", "").with_request_context(RequestContext::ApiGatewayV1(context))
}

fn sent(header: &'static str, value: &str) -> Request {
    let mut request = post("k-1", "");
    request.headers_mut().insert(header, value.parse().unwrap());
    request
}

#[tokio::test]
async fn subjects_of_tokens_are_told_apart() {
    let ann = || with(token("ann", "https://a"), None);
    assert!(shares(ann(), ann()).await);
    assert!(!shares(ann(), with(token("bob", "https://a"), None)).await);
    assert!(!shares(ann(), with(token("ann", "https://b"), None)).await);
    assert!(!shares(with(token("b", "a"), None), with(token("ab", ""), None)).await);
}

#[tokio::test]
async fn a_renewed_token_of_the_same_subject_is_the_same_caller() {
    let mut renewed = with(token("ann", "https://a"), None);
    renewed.headers_mut().insert("authorization", "Bearer new".parse().unwrap());
    assert!(shares(with(token("ann", "https://a"), None), renewed).await);
}

#[tokio::test]
async fn iam_identities_and_principals_are_told_apart() {
    let iam = |arn: &str| {
        let mut iam = ApiGatewayRequestAuthorizerIamDescription::default();
        iam.user_arn = Some(arn.to_owned());
        let mut authorizer = ApiGatewayRequestAuthorizer::default();
        authorizer.iam = Some(iam);
        with(authorizer, None)
    };
    assert!(shares(iam("arn:a"), iam("arn:a")).await);
    assert!(!shares(iam("arn:a"), iam("arn:b")).await);
    let principal = |name: &str| rest(json!({ "principalId": name }));
    assert!(shares(principal("ann"), principal("ann")).await);
    assert!(!shares(principal("ann"), principal("bob")).await);
    let cognito = |subject: &str| rest(json!({ "claims": { "sub": subject, "iss": "c" } }));
    assert!(!shares(cognito("ann"), cognito("bob")).await);
}

#[tokio::test]
async fn without_an_authorizer_the_credentials_tell() {
    for header in ["authorization", "x-api-key", "x-amzn-oidc-identity"] {
        assert!(shares(sent(header, "a"), sent(header, "a")).await, "{header}");
        assert!(!shares(sent(header, "a"), sent(header, "b")).await, "{header}");
        assert!(!shares(sent(header, "a"), post("k-1", "")).await, "{header}");
    }
    assert!(!shares(sent("authorization", "a"), sent("x-api-key", "a")).await);
}

#[tokio::test]
async fn the_user_can_say_who_asks() {
    let world = World::new();
    let layer = world.layer(&charges()).caller(|request| {
        let token = request.headers().get("authorization")?.to_str().ok()?;
        Some(token.split('.').next()?.to_owned())
    });
    world.answer(&layer, sent("authorization", "ann.1")).await;
    assert!(world.answer(&layer, sent("authorization", "ann.2")).await.replayed);
    assert!(!world.answer(&layer, sent("authorization", "bob.1")).await.replayed);
}

#[tokio::test]
async fn a_key_counts_for_one_method_and_one_route() {
    let of = |method, path| request(method, path, Some("k-1"), "");
    assert!(!shares(of(Method::POST, "/charges"), of(Method::PATCH, "/charges")).await);
    assert!(!shares(of(Method::POST, "/charges"), of(Method::POST, "/refunds")).await);
    let everything = || with(token("ann", ""), Some("$default"));
    let mut elsewhere = everything();
    *elsewhere.uri_mut() = "/refunds".parse().unwrap();
    assert!(!shares(everything(), elsewhere).await, "a route for everything says nothing");
}

#[tokio::test]
async fn one_route_with_another_path_is_a_mismatch() {
    let world = World::new();
    let layer = world.layer(&charges());
    let of = |path: &str| {
        let mut request = with(token("ann", ""), Some("POST /charges/{id}"));
        *request.uri_mut() = path.parse().unwrap();
        request
    };
    assert_eq!(world.answer(&layer, of("/charges/1")).await.status, 201);
    assert_eq!(world.answer(&layer, of("/charges/2")).await.status, 422);
}
