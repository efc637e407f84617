//! When two requests are the same, and the answer to another request with the same key.

use lambda_http::{
    Body, Request, RequestExt as _,
    aws_lambda_events::apigw::{ApiGatewayProxyRequestContext, ApiGatewayV2httpRequestContext},
    http::Method,
    request::RequestContext,
};
use lambda_idempotency::Operation;
use lambda_idempotency::http::Http;

use crate::support::{World, charges, post, request};

/// The refund of an order, through an API with a route for that.
fn refund(path: &str, body: &str) -> Request {
    let mut context = ApiGatewayV2httpRequestContext::default();
    context.route_key = Some("POST /orders/{id}/refund".to_owned());
    let request = request(Method::POST, path, Some("k-1"), body);
    request.with_request_context(RequestContext::ApiGatewayV2(context))
}

/// A request is processed and replayed, and other requests with its key are refused.
async fn is_distinguished(
    operation: &Operation,
    first: impl Fn() -> Request,
    others: Vec<Request>,
) {
    let world = World::new();
    let layer = world.layer(operation);
    assert_eq!(world.answer(&layer, first()).await.status, 201);
    assert!(world.answer(&layer, first()).await.replayed);
    for other in others {
        let answer = world.answer(&layer, other).await;
        assert_eq!((answer.status, answer.kind()), (422, "mismatch"));
    }
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn the_refund_of_one_order_never_answers_that_of_another() {
    let body = r#"{"amount":5,"paymentId":"p-1"}"#;
    for operation in [
        charges(),
        charges().fingerprint("amount"),
        charges().key("paymentId"),
        charges().key("paymentId").fingerprint("amount"),
    ] {
        let others = vec![
            refund("/orders/2/refund", body),
            refund("/orders/1/refund?dry=1", body),
            refund("https://other.example.com/orders/1/refund", body),
        ];
        is_distinguished(&operation, || refund("/orders/1/refund", body), others).await;
    }
}

#[tokio::test]
async fn the_same_path_in_another_stage_is_another_request() {
    let at = |stage: &str| {
        let mut context = ApiGatewayProxyRequestContext::default();
        context.resource_path = Some("/charges".to_owned());
        context.stage = Some(stage.to_owned());
        post("k-1", "").with_request_context(RequestContext::ApiGatewayV1(context))
    };
    is_distinguished(&charges(), || at("prod"), vec![at("test")]).await;
}

/// A custom domain may move to another stage between two attempts.
#[tokio::test]
async fn a_stage_that_the_client_did_not_send_has_no_effect() {
    let at = |stage: &str| {
        let mut context = ApiGatewayProxyRequestContext::default();
        context.path = Some("/v1/charges".to_owned());
        context.stage = Some(stage.to_owned());
        let path = format!("https://api.example.com/{stage}/v1/charges");
        request(Method::POST, &path, Some("k-1"), "")
            .with_raw_http_path("/v1/charges")
            .with_request_context(RequestContext::ApiGatewayV1(context))
    };
    let world = World::new();
    let layer = world.layer(&charges());
    world.answer(&layer, at("blue")).await;
    assert!(world.answer(&layer, at("green")).await.replayed);
}

#[tokio::test]
async fn paths_that_become_the_same_url_are_different_requests() {
    let at = |raw: &str| refund("/orders/1", "").with_raw_http_path(raw);
    is_distinguished(&charges(), || at("/orders/1"), vec![at("/orders/1#a"), at("/orders/2/../1")])
        .await;
}

/// They are also not processed as new requests: a client by mistake could be charged twice.
#[tokio::test]
async fn a_key_with_another_method_or_path_is_refused() {
    let of = |method, path| request(method, path, Some("k-1"), "");
    let first = || of(Method::POST, "/charges");
    let others = vec![of(Method::PATCH, "/charges"), of(Method::POST, "/refunds")];
    is_distinguished(&charges(), first, others).await;
    let named = |path| request(Method::POST, path, None, r#"{"id":1}"#);
    is_distinguished(&charges().key("id"), || named("/charges"), vec![named("/refunds")]).await;
}

#[tokio::test]
async fn with_keys_for_each_path_the_stage_has_no_effect_and_other_requests_are_refused() {
    let at = |stage: &str, url: &str, body: &str| {
        let mut context = ApiGatewayProxyRequestContext::default();
        context.path = Some("/v1/carts/1/items".to_owned());
        context.stage = Some(stage.to_owned());
        request(Method::POST, url, None, body)
            .with_raw_http_path("/v1/carts/1/items")
            .with_request_context(RequestContext::ApiGatewayV1(context))
    };
    let world = World::new();
    let layer = world.layer_with(&charges().key("sku"), Http::by_body().one_key_for_each_path());
    let [blue, green, elsewhere] = [
        "https://api.example.com/blue/v1/carts/1/items",
        "https://api.example.com/green/v1/carts/1/items",
        "https://other.example.com/blue/v1/carts/1/items",
    ];
    let item = r#"{"sku":"s-1"}"#;
    world.answer(&layer, at("blue", blue, item)).await;
    assert!(world.answer(&layer, at("green", green, item)).await.replayed);
    let more = r#"{"sku":"s-1","count":2}"#;
    for other in [at("blue", blue, more), at("blue", elsewhere, item)] {
        assert_eq!(world.answer(&layer, other).await.kind(), "mismatch");
    }
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn only_the_part_of_the_body_in_the_fingerprint_is_compared() {
    let amount =
        |amount: u8, sent: u8| post("k-1", &format!(r#"{{"amount":{amount},"sent":{sent}}}"#));
    let world = World::new();
    let layer = world.layer(&charges().fingerprint("amount"));
    world.answer(&layer, amount(5, 1)).await;
    assert!(world.answer(&layer, amount(5, 2)).await.replayed);
    assert_eq!(world.answer(&layer, amount(6, 1)).await.status, 422);
}

#[tokio::test]
async fn a_form_with_another_boundary_is_the_same_request() {
    let form = |boundary: &str, amount: u8| {
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n{amount}\r\n\
             --{boundary}--\r\n"
        );
        let mut request = post("k-1", "");
        let kind = format!("multipart/form-data; boundary={boundary}");
        request.headers_mut().insert("content-type", kind.parse().unwrap());
        *request.body_mut() = Body::Binary(body.into_bytes());
        request
    };
    let world = World::new();
    let layer = world.layer(&charges());
    world.answer(&layer, form("----first", 5)).await;
    assert!(world.answer(&layer, form("----second", 5)).await.replayed);
    assert_eq!(world.answer(&layer, form("----second", 6)).await.status, 422);
}

/// The client sent its key, and must not be told that it sent none.
#[tokio::test]
async fn a_request_without_the_fingerprint_is_told_so_and_not_that_its_key_is_missing() {
    for (operation, is_key) in [
        (charges().fingerprint("amount"), false),
        (charges().key("id").fingerprint("amount"), false),
        (charges().key("paymentId").fingerprint("id"), true),
    ] {
        let world = World::new();
        let answer = world.answer(&world.layer(&operation), post("k-1", r#"{"id":"p-1"}"#)).await;
        assert_eq!((answer.status, answer.kind()), (400, "key"));
        let problem = answer.problem.as_ref().unwrap();
        let about_key = problem["title"] == "The request has no usable idempotency key";
        assert_eq!(about_key, is_key, "{problem}");
        let compared = "The request cannot be compared with others of its key";
        assert_eq!(problem["title"] == compared, !is_key, "{problem}");
        assert!(!problem.to_string().contains("amount"), "{problem}");
        assert_eq!(world.calls(), 0);
    }
}
