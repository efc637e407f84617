//! Callers never get each other's responses: how a caller is determined, and which requests are refused.

use lambda_http::{Request, http::HeaderName};
use lambda_idempotency::{
    http::{ByHeader, Http},
    policy::OnMissingKey,
};
use serde_json::{Value, json};

use super::caller_requests::{
    bare, http_api, lambda, load_balancer, refused, refused_by, rest, sent, shares, shares_by,
    signed, token,
};
use crate::support::{World, charges, post};

/// A request with this credential, beside what an authorizer says.
fn with(mut request: Request, credential: &str) -> Request {
    request.headers_mut().insert("authorization", credential.parse().unwrap());
    request
}

#[tokio::test]
async fn the_authorizer_or_else_the_credential_names_the_caller() {
    let cognito =
        |subject: &str| rest(json!({ "claims": { "sub": subject, "iss": "c" } }), json!({}));
    let over_rest = |name: &str| rest(json!({ "principalId": name }), json!({}));
    let over_http = |name: &str| lambda(json!({ "principalId": name }));
    let by = |credential: &str| sent("authorization", credential);
    for (first, second, same) in [
        (token("https://a", "ann"), token("https://a", "ann"), true),
        (token("https://a", "ann"), with(token("https://a", "ann"), "Bearer renewed"), true),
        (token("https://a", "ann"), token("https://a", "bob"), false),
        (token("https://a", "ann"), token("https://b", "ann"), false),
        (token("a", "bc"), token("ab", "c"), false),
        (cognito("ann"), cognito("ann"), true),
        (cognito("ann"), cognito("bob"), false),
        (over_rest("ann"), over_rest("ann"), true),
        (over_rest("ann"), over_rest("bob"), false),
        (over_http("ann"), over_http("ann"), true),
        (over_http("ann"), over_http("bob"), false),
        (by("Basic YTpi"), by("Basic YTpi"), true),
        (by("DPoP a"), by("DPoP a"), true),
        (by("a-token"), by("a-token"), true),
    ] {
        let shown = format!("{first:?} {second:?}");
        assert_eq!(shares(first, second).await, same, "{shown}");
    }
    // RFC 9110, section 11.1: the scheme is case-insensitive, and 1*SP follows it.
    for same in ["bearer t", "BEARER t", "Bearer  t", "bearer   t", " Bearer t "] {
        assert!(shares(by("Bearer t"), by(same)).await, "{same}");
    }
    for (one, other) in
        ["Bearer T", "Bearer t  t", "Token t", "Basic t", "Bearert", "Bearer\tt", "t"]
            .map(|other| ("Bearer t", other))
            .into_iter()
            .chain([("Bearer a b", "Bearer a  b"), ("token-a", "Token-a")])
    {
        assert!(!shares(by(one), by(other)).await, "{one}, {other}");
    }
}

#[tokio::test]
async fn a_request_that_does_not_identify_its_caller_is_refused() {
    let by = |credential: &str| sent("authorization", credential);
    let principal = |name: &str| rest(json!({ "principalId": name }), json!({}));
    let twice = [("authorization", "Bearer a"), ("authorization", "Bearer b")];
    let changes =
        "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-west-1/lambda/aws4_request, Signature=1";
    for (request, status, why) in [
        (bare(), 403, "nothing"),
        (sent("cookie", "session=ann"), 403, "a `Cookie` header changes between attempts"),
        (sent("x-api-key", "shop"), 403, "an API key may belong to a whole application"),
        (http_api(Value::Null), 403, "an API without an authorizer"),
        (rest(json!({ "claims": null, "scopes": null }), json!({})), 403, "the same"),
        (load_balancer(bare(), &twice), 403, "two credentials"),
        (lambda(json!({ "plan": "gold" })), 500, "it does not name its callers"),
        (lambda(json!({ "claims": { "sub": "ann" } })), 500, "neither does this"),
        (http_api(json!({ "jwt": { "claims": { "scope": "pay" } } })), 500, "no subject"),
        (principal("user"), 500, "the constant of a sample authorizer"),
        (principal("me"), 500, "another one"),
        (principal("user|a1b2c3d4"), 500, "another one"),
        (principal("abcdef"), 500, "another one"),
        (by(changes), 403, "it changes with each attempt"),
        (by("Digest username=\"ann\", nc=00000001"), 403, "it changes with each attempt"),
        (by("OAuth oauth_nonce=\"1\""), 403, "it changes with each attempt"),
        (by("Negotiate YII="), 403, "it changes with each attempt"),
    ] {
        assert_eq!(refused(request).await, status, "{why}");
    }
    for empty in ["", "Bearer", "bearer", "Bearer ", " BASIC  ", "DPoP", "Token", "apikey"] {
        assert_eq!(refused(by(empty)).await, 403, "{empty:?}");
    }
}

/// A client renews its token between two attempts: with the token as its name, it would pay twice.
#[tokio::test]
async fn a_credential_does_not_stand_in_for_the_caller_whom_an_authorizer_does_not_name() {
    for unnamed in [
        http_api(json!({ "jwt": { "claims": { "iss": "https://a", "scope": "pay" } } })),
        lambda(json!({ "plan": "gold" })),
        rest(json!({ "principalId": "user" }), json!({})),
        rest(json!({ "claims": { "iss": "https://a", "email": "ann" } }), json!({})),
    ] {
        assert_eq!(refused(with(unnamed, "Bearer of-ann")).await, 500);
    }
}

#[test]
fn a_second_way_to_tell_callers_apart_is_refused() {
    let idempotency = World::new().idempotency();
    let header = || HeaderName::from_static("x-api-key");
    for http in [
        Http::by_header().caller(|_| None).all_callers_are_one(),
        Http::by_header().caller_from_header(header()).caller(|_| None),
        Http::by_header().all_callers_are_one().caller_from_header(header()),
    ] {
        let error = idempotency.http(&charges(), http).err().unwrap().to_string();
        assert!(error.contains("operation `charges`") && error.contains("choose one"), "{error}");
    }
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
    // A user, and the subject of a client's certificate, which they have verified.
    for header in ["x-amzn-oidc-identity", "x-amzn-mtls-clientcert-subject"] {
        let layer = |world: &World| {
            let http = Http::by_header().caller_from_header(HeaderName::from_static(header));
            world.layer_with(&charges(), http)
        };
        let from = |name| load_balancer(bare(), &[(header, name)]);
        for name in ["CN=ann", "CN=bob"] {
            let world = World::new();
            let shared = shares_by(&layer(&world), &world, from("CN=ann"), from(name)).await;
            assert_eq!(shared, name == "CN=ann", "{header}");
        }
        let world = World::new();
        let elsewhere = sent(header, "CN=ann");
        assert_eq!(refused_by(&layer(&world), &world, elsewhere).await.status, 403);
    }
}

#[tokio::test]
async fn a_configured_header_names_the_caller() {
    let by_key = |world: &World| {
        world.layer_with(
            &charges(),
            Http::by_header().caller_from_header(HeaderName::from_static("x-api-key")),
        )
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
    let layer = world.layer_with(
        &charges(),
        Http::by_header().caller(|request| {
            let token = request.headers().get("authorization")?.to_str().ok()?;
            Some(token.split('.').next()?.to_owned())
        }),
    );
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
    let layer = world.layer_with(&charges(), Http::by_header().all_callers_are_one());
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

/// A captured request is answered before its token is verified, by nobody or by the handler.
#[tokio::test]
async fn a_replay_sets_cookies_for_a_caller_whom_the_api_has_verified() {
    let cookies = async |http: Http<ByHeader>, first: Request, again: Request| {
        let world = World::new();
        let layer = world.layer_with(&charges(), http);
        let mut set = Vec::new();
        for request in [first, again] {
            let response = world.send(&layer, request).await.unwrap();
            set.push(response.headers().get_all("set-cookie").iter().count());
        }
        assert_eq!(world.calls(), 1);
        set
    };
    let post = || post("k-1", "cookie");
    let signed = || {
        let mut request = signed("arn:aws:iam::111122223333:user/ann", None);
        *request.body_mut() = "cookie".into();
        request
    };
    assert_eq!(cookies(Http::by_header(), signed(), signed()).await, [1, 1], "the API verified it");
    let shared = Http::by_header().all_callers_are_one();
    assert_eq!(cookies(shared, post(), post()).await, [1, 0]);
}
