//! Callers never get each other's responses: how a caller is determined, and which requests are refused.

use lambda_http::{Request, http::HeaderName};
use lambda_idempotency::{
    OnMissingKey,
    http::{ByHeader, Http},
};
use serde_json::{Value, json};

use super::caller_requests::{
    bare, http_api, lambda, load_balancer, refused, refused_by, rest, sent, shares, shares_by,
    signed, token,
};
use crate::support::{World, charges, post};

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

/// RFC 9110, section 11.1: the scheme is case-insensitive, and 1*SP follows it.
#[tokio::test]
async fn one_credential_is_one_caller_however_its_scheme_is_written() {
    for same in ["bearer t", "BEARER t", "Bearer  t", "bearer   t", " Bearer t "] {
        assert!(
            shares(sent("authorization", "Bearer t"), sent("authorization", same)).await,
            "{same}"
        );
    }
    for other in ["Bearer T", "Bearer t  t", "Token t", "Basic t", "Bearert", "Bearer\tt", "t"] {
        let first = sent("authorization", "Bearer t");
        assert!(!shares(first, sent("authorization", other)).await, "{other}");
    }
    for (one, other) in [("Bearer a b", "Bearer a  b"), ("token-a", "Token-a")] {
        assert!(!shares(sent("authorization", one), sent("authorization", other)).await, "{one}");
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
async fn a_scheme_without_a_credential_identifies_nobody() {
    for scheme in ["Bearer", "bearer", "Bearer ", " BASIC  ", "DPoP", "Token", "apikey"] {
        assert_eq!(refused(sent("authorization", scheme)).await, 403, "{scheme:?}");
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
    let by_identity = |world: &World| {
        world.layer_with(
            &charges(),
            Http::by_header().caller_from_header(HeaderName::from_static("x-amzn-oidc-identity")),
        )
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
async fn a_replay_sets_cookies_only_for_a_verified_caller() {
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
    assert_eq!(cookies(Http::by_header(), post(), post()).await, [1, 0], "nobody verified it");
    let verified = Http::by_header().verify(async |_| Ok::<_, &str>(()));
    assert_eq!(cookies(verified, post(), post()).await, [1, 1]);
    let signed = || {
        let mut request = signed("arn:aws:iam::111122223333:user/ann", None);
        *request.body_mut() = "cookie".into();
        request
    };
    assert_eq!(cookies(Http::by_header(), signed(), signed()).await, [1, 1], "the API verified it");
    let shared = Http::by_header().all_callers_are_one();
    assert_eq!(cookies(shared, post(), post()).await, [1, 0]);
}
