//! Callers that IAM or Amazon Cognito authenticated: whom a signed request identifies.

use lambda_http::{
    RequestExt as _, aws_lambda_events::apigw::ApiGatewayProxyRequestContext, http::HeaderName,
    request::RequestContext,
};
use lambda_idempotency::http::Http;
use serde_json::json;

use super::caller_requests::{bare, refused, rest, shares, shares_by, signed};
use crate::support::{World, charges};

const COGNITO: &str =
    "arn:aws:sts::111122223333:assumed-role/Cognito_Users/CognitoIdentityCredentials";

#[tokio::test]
async fn users_of_a_pool_are_told_apart_by_their_identity_id_and_tasks_of_a_role_are_one_caller() {
    let (ann, bob) = ("eu-west-1:ann", "eu-west-1:bob");
    let session = |name: &str| format!("arn:aws:sts::111122223333:assumed-role/shop/{name}");
    let over_rest = |arn: &str, id: Option<&str>| {
        rest(json!({}), json!({ "userArn": arn, "cognitoIdentityId": id }))
    };
    for way in [signed, over_rest] {
        assert!(shares(way(COGNITO, Some(ann)), way(COGNITO, Some(ann))).await);
        assert!(!shares(way(COGNITO, Some(ann)), way(COGNITO, Some(bob))).await);
        assert_eq!(refused(way(COGNITO, None)).await, 403);
        assert!(shares(way(&session("task-1"), None), way(&session("task-2"), None)).await);
        // A session with the name of a person. A client chooses it, and must not cause a server error.
        assert_eq!(refused(way(&session("ann@example.com"), None)).await, 403);
    }
}

/// CloudFront signs for all viewers of a distribution with the same identity, by its origin access control or
/// in a function at its edge.
#[tokio::test]
async fn viewers_behind_cloudfront_are_refused_until_the_function_distinguishes_them() {
    let viewer = |session: &str, cookie: &str| {
        let role = "arn:aws:sts::111122223333:assumed-role/OriginAccessControlRole";
        let mut request = signed(&format!("{role}/{session}"), None);
        request.headers_mut().insert("cookie", cookie.parse().unwrap());
        request
    };
    for session in
        ["OriginAccessSession", "EdgeCredentialsProxy+EdgeHostAuthenticationClient-NRT12-P2"]
    {
        assert_eq!(refused(viewer(session, "session=ann")).await, 403, "{session}");
    }
    for arn in
        ["arn:aws:sts::111122223333:assumed-role/edge/sign", "arn:aws:iam::111122223333:user/edge"]
    {
        let mut request = signed(arn, None);
        request.headers_mut().insert("x-amz-cf-id", "a==".parse().unwrap());
        assert_eq!(refused(request).await, 403, "{arn}");
    }
    let world = World::new();
    let layer = world.layer_with(
        &charges(),
        Http::by_header().caller_from_header(HeaderName::from_static("cookie")),
    );
    let [ann, bob] =
        ["session=ann", "session=bob"].map(|cookie| viewer("OriginAccessSession", cookie));
    assert!(!shares_by(&layer, &world, ann, bob).await);
}

/// HTTP APIs send a route instead of a REST API's resource id. An edge-optimized REST API is behind a
/// distribution of AWS, which does not change the client's signature.
#[tokio::test]
async fn viewers_of_an_http_api_in_format_1_0_are_refused_and_clients_of_rest_apis_are_not() {
    let by = |resource: Option<&str>, session: &str| {
        let role = "arn:aws:sts::111122223333:assumed-role/edge";
        let mut context = ApiGatewayProxyRequestContext::default();
        context.resource_id = resource.map(str::to_owned);
        context.identity.user_arn = Some(format!("{role}/{session}"));
        let mut request = bare().with_request_context(RequestContext::ApiGatewayV1(context));
        request.headers_mut().insert("x-amz-cf-id", "a==".parse().unwrap());
        request
    };
    for resource in [None, Some(""), Some("$default"), Some("POST /charges"), Some("ANY /{a+}")] {
        assert_eq!(refused(by(resource, "sign")).await, 403, "{resource:?}");
    }
    assert!(shares(by(Some("roq9wj"), "task-1"), by(Some("roq9wj"), "task-2")).await);
}

#[tokio::test]
async fn iam_users_roles_and_accounts_are_different_callers() {
    let arns = [
        "arn:aws:iam::111122223333:user/ann",
        "arn:aws:iam::111122223333:user/bob",
        "arn:aws:iam::444455556666:user/ann",
        "arn:aws:sts::111122223333:assumed-role/shop/task-1",
        "arn:aws:sts::111122223333:assumed-role/bank/task-1",
        "arn:aws:sts::444455556666:assumed-role/shop/task-1",
        // People share a role of IAM Identity Center, and each has a session.
        "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Shop_0123456789abcdef/ann@example.com",
        "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Shop_0123456789abcdef/bob@example.com",
        "arn:aws:sts::111122223333:federated-user/ann",
    ];
    let world = World::new();
    let layer = world.layer(&charges());
    for again in [false, true] {
        for arn in arns {
            let answer = world.answer(&layer, signed(arn, None)).await;
            assert_eq!((answer.status, answer.replayed), (201, again), "{arn}");
        }
    }
    for unnamed in ["", "anonymous"] {
        assert_eq!(refused(signed(unnamed, None)).await, 500, "{unnamed}");
    }
}

/// Several people may share a role.
#[tokio::test]
async fn people_who_share_a_role_do_not_get_each_others_cookies() {
    let person = |name: &str| {
        let arn = format!("arn:aws:sts::111122223333:assumed-role/AppUsers/{name}");
        let mut request = signed(&arn, None);
        *request.body_mut() = "cookie".into();
        request
    };
    let world = World::new();
    let layer = world.layer(&charges());
    let ann = world.send(&layer, person("ann")).await.unwrap();
    assert!(ann.headers().contains_key("set-cookie"));
    let bob = world.send(&layer, person("bob")).await.unwrap();
    assert_eq!((world.calls(), bob.headers().get("set-cookie")), (1, None));
}
