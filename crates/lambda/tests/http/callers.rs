//! Callers never get each other's responses: how a caller is determined, and which requests are refused.

use lambda_http::{
    Request, RequestExt as _,
    aws_lambda_events::{
        alb::AlbTargetGroupRequestContext,
        apigw::{
            ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer,
            ApiGatewayV2httpRequestContext,
        },
    },
    http::HeaderName,
    request::RequestContext,
};
use lambda_idempotency::{OnMissingKey, http::HttpLayer};
use serde_json::{Value, json};

use crate::support::{Answer, World, charges, post};

/// A request that does not identify its caller.
fn bare() -> Request {
    let mut request = post("k-1", "");
    request.headers_mut().remove("authorization");
    request
}

fn sent(header: &'static str, value: &str) -> Request {
    let mut request = bare();
    request.headers_mut().insert(header, value.parse().unwrap());
    request
}

/// A request through an HTTP API or a function URL, with this answer of the authorizer.
fn http_api(authorizer: Value) -> Request {
    let mut context = ApiGatewayV2httpRequestContext::default();
    context.authorizer = serde_json::from_value(authorizer).unwrap();
    bare().with_request_context(RequestContext::ApiGatewayV2(context))
}

fn token(issuer: &str, subject: &str) -> Request {
    http_api(json!({ "jwt": { "claims": { "iss": issuer, "sub": subject } } }))
}

fn lambda(context: Value) -> Request {
    http_api(json!({ "lambda": context }))
}

fn signed(arn: &str, cognito: Option<&str>) -> Request {
    let cognito = cognito.map(|id| json!({ "amr": ["authenticated"], "identityId": id }));
    http_api(json!({ "iam": { "userArn": arn, "cognitoIdentity": cognito } }))
}

/// A request through a REST API with this authorizer and identity.
fn rest(authorizer: Value, identity: Value) -> Request {
    let mut context = ApiGatewayProxyRequestContext::default();
    let mut fields = ApiGatewayRequestAuthorizer::default();
    fields.fields = serde_json::from_value(authorizer).unwrap();
    context.authorizer = fields;
    context.identity = serde_json::from_value(identity).unwrap();
    bare().with_request_context(RequestContext::ApiGatewayV1(context))
}

fn load_balancer(mut request: Request, headers: &[(&'static str, &str)]) -> Request {
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    let context = AlbTargetGroupRequestContext::default();
    request.with_request_context(RequestContext::Alb(context))
}

/// Whether the second of two requests gets the response of the first.
async fn shares_by(layer: &HttpLayer, world: &World, first: Request, second: Request) -> bool {
    assert_eq!(world.answer(layer, first).await.status, 201);
    let second = world.answer(layer, second).await;
    assert_eq!(second.status, 201, "{}", second.body);
    assert_eq!(world.calls(), if second.replayed { 1 } else { 2 });
    second.replayed
}

async fn shares(first: Request, second: Request) -> bool {
    let world = World::new();
    shares_by(&world.layer(&charges()), &world, first, second).await
}

async fn refused_by(layer: &HttpLayer, world: &World, request: Request) -> Answer {
    let answer = world.answer(layer, request).await;
    assert_eq!(answer.kind(), "caller");
    assert_eq!((world.calls(), world.store.write_calls()), (0, 0));
    answer
}

/// The status with which a request is refused because its caller is not known.
async fn refused(request: Request) -> u16 {
    let world = World::new();
    refused_by(&world.layer(&charges()), &world, request).await.status
}

const COGNITO: &str =
    "arn:aws:sts::111122223333:assumed-role/Cognito_Users/CognitoIdentityCredentials";

#[tokio::test]
async fn users_of_a_cognito_identity_pool_are_distinguished_by_their_identity_id() {
    let over_http = |id| signed(COGNITO, Some(id));
    let over_rest =
        |id: &str| rest(json!({}), json!({ "userArn": COGNITO, "cognitoIdentityId": id }));
    assert!(shares(over_http("eu-west-1:ann"), over_http("eu-west-1:ann")).await);
    assert!(!shares(over_http("eu-west-1:ann"), over_http("eu-west-1:bob")).await);
    assert!(shares(over_rest("eu-west-1:ann"), over_rest("eu-west-1:ann")).await);
    assert!(!shares(over_rest("eu-west-1:ann"), over_rest("eu-west-1:bob")).await);
}

#[tokio::test]
async fn a_user_of_an_identity_pool_whose_identity_id_is_missing_is_refused() {
    assert_eq!(refused(signed(COGNITO, None)).await, 500);
    assert_eq!(refused(rest(json!({}), json!({ "userArn": COGNITO }))).await, 500);
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
        assert_eq!(refused(viewer(session, "session=ann")).await, 500, "{session}");
    }
    for arn in
        ["arn:aws:sts::111122223333:assumed-role/edge/sign", "arn:aws:iam::111122223333:user/edge"]
    {
        let mut request = signed(arn, None);
        request.headers_mut().insert("x-amz-cf-id", "a==".parse().unwrap());
        assert_eq!(refused(request).await, 500, "{arn}");
    }
    let world = World::new();
    let layer = world.layer(&charges()).caller_from_header(HeaderName::from_static("cookie"));
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
        assert_eq!(refused(by(resource, "sign")).await, 500, "{resource:?}");
    }
    assert!(shares(by(Some("roq9wj"), "task-1"), by(Some("roq9wj"), "task-2")).await);
}

#[tokio::test]
async fn sessions_of_a_role_with_the_names_of_people_are_refused() {
    let person = "arn:aws:sts::111122223333:assumed-role/AppUsers/ann@example.com";
    assert_eq!(refused(signed(person, None)).await, 500);
    assert_eq!(refused(rest(json!({}), json!({ "userArn": person }))).await, 500);
}

#[tokio::test]
async fn tasks_of_one_role_are_one_caller() {
    let session = |name: &str| format!("arn:aws:sts::111122223333:assumed-role/shop/{name}");
    let task = |name: &str| signed(&session(name), None);
    assert!(shares(task("task-1"), task("task-2")).await, "through an HTTP API");
    let task = |name: &str| rest(json!({}), json!({ "userArn": session(name) }));
    assert!(shares(task("task-1"), task("task-2")).await, "through a REST API");
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

#[tokio::test]
async fn subjects_of_tokens_are_different_callers() {
    assert!(shares(token("https://a", "ann"), token("https://a", "ann")).await);
    assert!(!shares(token("https://a", "ann"), token("https://a", "bob")).await);
    assert!(!shares(token("https://a", "ann"), token("https://b", "ann")).await);
    assert!(!shares(token("a", "bc"), token("ab", "c")).await);
    let cognito =
        |subject: &str| rest(json!({ "claims": { "sub": subject, "iss": "c" } }), json!({}));
    assert!(shares(cognito("ann"), cognito("ann")).await);
    assert!(!shares(cognito("ann"), cognito("bob")).await);
}

#[tokio::test]
async fn a_renewed_token_of_the_same_subject_is_the_same_caller() {
    let mut renewed = token("https://a", "ann");
    renewed.headers_mut().insert("authorization", "Bearer new".parse().unwrap());
    assert!(shares(token("https://a", "ann"), renewed).await);
}

#[tokio::test]
async fn principals_of_lambda_authorizers_are_different_callers() {
    let over_rest = |name: &str| rest(json!({ "principalId": name }), json!({}));
    let over_http = |name: &str| lambda(json!({ "principalId": name }));
    for principal in [over_rest, over_http] as [fn(&str) -> Request; 2] {
        assert!(shares(principal("ann"), principal("ann")).await);
        assert!(!shares(principal("ann"), principal("bob")).await);
    }
}

#[tokio::test]
async fn an_authorizer_that_does_not_name_its_callers_is_refused() {
    for context in [json!({ "plan": "gold" }), json!({ "claims": { "sub": "ann" } })] {
        assert_eq!(refused(lambda(context)).await, 500);
    }
    assert_eq!(refused(http_api(json!({ "jwt": { "claims": { "scope": "pay" } } }))).await, 500);
    // Then the `Authorization` header distinguishes callers.
    let with = |token: &str| {
        let mut request = lambda(json!({ "plan": "gold" }));
        request.headers_mut().insert("authorization", token.parse().unwrap());
        request
    };
    assert!(shares(with("Bearer a"), with("Bearer a")).await);
    assert!(!shares(with("Bearer a"), with("Bearer b")).await);
}

#[tokio::test]
async fn the_constant_principals_of_sample_authorizers_are_refused() {
    for name in ["user", "me", "user|a1b2c3d4", "abcdef"] {
        assert_eq!(refused(rest(json!({ "principalId": name }), json!({}))).await, 500, "{name}");
    }
}

#[tokio::test]
async fn without_an_authorizer_the_credential_is_the_caller() {
    for credential in ["Bearer a", "Basic YTpi", "DPoP a", "a-token"] {
        let ann = || sent("authorization", credential);
        assert!(shares(ann(), ann()).await, "{credential}");
        assert!(!shares(ann(), sent("authorization", "Bearer b")).await, "{credential}");
    }
}

#[tokio::test]
async fn a_credential_that_changes_with_each_attempt_is_refused() {
    for credential in [
        "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-west-1/lambda/aws4_request, Signature=1",
        "Digest username=\"ann\", nc=00000001",
        "OAuth oauth_nonce=\"1\"",
        "Negotiate YII=",
    ] {
        assert_eq!(refused(sent("authorization", credential)).await, 403, "{credential}");
    }
}

#[tokio::test]
async fn a_request_that_does_not_identify_its_caller_is_refused() {
    assert_eq!(refused(bare()).await, 403);
    assert_eq!(refused(sent("authorization", "")).await, 403);
    assert_eq!(
        refused(sent("cookie", "session=ann")).await,
        403,
        "a `Cookie` header changes between attempts"
    );
    assert_eq!(
        refused(sent("x-api-key", "shop")).await,
        403,
        "an API key may belong to a whole application"
    );
    assert_eq!(refused(http_api(Value::Null)).await, 403);
    let nothing = json!({ "claims": null, "scopes": null });
    assert_eq!(refused(rest(nothing, json!({}))).await, 403, "an API without an authorizer");
    let twice = [("authorization", "Bearer a"), ("authorization", "Bearer b")];
    assert_eq!(refused(load_balancer(bare(), &twice)).await, 403);
}

#[tokio::test]
async fn a_client_cannot_choose_its_caller_in_the_header_of_load_balancers() {
    assert_eq!(refused(sent("x-amzn-oidc-identity", "ann")).await, 403);
    let identity = [("x-amzn-oidc-identity", "ann")];
    assert_eq!(
        refused(load_balancer(bare(), &identity)).await,
        403,
        "unless the function is configured so"
    );
    let bob = || load_balancer(post("k-1", ""), &identity);
    assert!(shares(bob(), post("k-1", "")).await, "only the credential identifies the caller");
}

#[tokio::test]
async fn the_header_of_load_balancers_is_accepted_from_them_if_configured() {
    let by_identity = |world: &World| {
        world.layer(&charges()).caller_from_header(HeaderName::from_static("x-amzn-oidc-identity"))
    };
    let from = |name| load_balancer(bare(), &[("x-amzn-oidc-identity", name)]);
    let world = World::new();
    assert!(shares_by(&by_identity(&world), &world, from("ann"), from("ann")).await);
    let world = World::new();
    assert!(!shares_by(&by_identity(&world), &world, from("ann"), from("bob")).await);
    let world = World::new();
    let elsewhere = sent("x-amzn-oidc-identity", "ann");
    assert_eq!(refused_by(&by_identity(&world), &world, elsewhere).await.status, 403);
}

#[tokio::test]
async fn a_configured_header_names_the_caller() {
    let by_key = |world: &World| {
        world.layer(&charges()).caller_from_header(HeaderName::from_static("x-api-key"))
    };
    let world = World::new();
    assert!(
        !shares_by(&by_key(&world), &world, sent("x-api-key", "a"), sent("x-api-key", "b")).await
    );
    for request in [
        bare(),
        sent("x-api-key", ""),
        load_balancer(bare(), &[("x-api-key", "a"), ("x-api-key", "b")]),
    ] {
        let world = World::new();
        assert_eq!(refused_by(&by_key(&world), &world, request).await.status, 403);
    }
}

#[tokio::test]
async fn the_function_can_name_the_caller() {
    let world = World::new();
    let layer = world.layer(&charges()).caller(|request| {
        let token = request.headers().get("authorization")?.to_str().ok()?;
        Some(token.split('.').next()?.to_owned())
    });
    for unnamed in [bare(), sent("authorization", ".1")] {
        assert_eq!(refused_by(&layer, &world, unnamed).await.status, 403);
    }
    world.answer(&layer, sent("authorization", "ann.1")).await;
    assert!(world.answer(&layer, sent("authorization", "ann.2")).await.replayed);
    assert!(!world.answer(&layer, sent("authorization", "bob.1")).await.replayed);
}

#[tokio::test]
async fn all_callers_are_one_only_if_configured() {
    let world = World::new();
    let layer = world.layer(&charges()).all_callers_are_one();
    assert!(shares_by(&layer, &world, bare(), sent("authorization", "Bearer a")).await);
}

#[tokio::test]
async fn a_request_without_a_key_needs_no_caller() {
    let world = World::new();
    let layer = world.layer(&charges().on_missing_key(OnMissingKey::RunUnprotected));
    let mut request = bare();
    request.headers_mut().remove("idempotency-key");
    assert_eq!(world.answer(&layer, request).await.status, 201);
}

#[tokio::test]
async fn a_replay_sets_cookies_only_for_the_same_caller() {
    let world = World::new();
    let cookies = async |layer: &HttpLayer, key| {
        let response = world.send(layer, post(key, "cookie")).await.unwrap();
        response.headers().get_all("set-cookie").iter().count()
    };
    let layer = world.layer(&charges());
    assert_eq!((cookies(&layer, "k-1").await, cookies(&layer, "k-1").await), (1, 1));
    let layer = layer.all_callers_are_one();
    assert_eq!((cookies(&layer, "k-2").await, cookies(&layer, "k-2").await), (1, 0));
    assert_eq!(world.calls(), 2);
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
