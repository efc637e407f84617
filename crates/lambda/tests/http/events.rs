//! Real events of API Gateway, function URLs and load balancers, and the responses to them.

use std::convert::Infallible;

use lambda_http::{
    Adapter, Body,
    http::Response,
    request::LambdaRequest,
    tower::{Layer as _, ServiceExt as _, service_fn},
};
use lambda_idempotency::http::Http;
use lambda_idempotency::http::HttpLayer;
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json};

use crate::support::{World, charges};

/// Invokes the function with an event as Lambda does, and returns its answer.
async fn invoke(world: &World, event: &Value) -> Value {
    invoke_by(&world.layer(&charges()), world, event).await
}

async fn invoke_by(layer: &HttpLayer, world: &World, event: &Value) -> Value {
    let request: LambdaRequest = serde_json::from_value(event.clone()).unwrap();
    let handler = {
        let world = world.clone();
        service_fn(move |request| world.handle(request))
    };
    let service = layer.layer(handler);
    let event = LambdaEvent::new(request, Context::default());
    serde_json::to_value(Adapter::from(service).oneshot(event).await.unwrap()).unwrap()
}

/// Whether the response has a header, in either of the formats.
fn has_header(response: &Value, name: &str) -> bool {
    ["headers", "multiValueHeaders"].iter().any(|place| response[place].get(name).is_some())
}

async fn is_deduplicated(mut event: Value) {
    let world = World::instant();
    for place in ["headers", "multiValueHeaders"] {
        if event[place].is_object() {
            // VPC Lattice has lists in `headers`.
            let is_list = place != "headers" || is_of_lattice(&event);
            for (name, value) in [("Idempotency-Key", "\"k-1\""), ("Authorization", "Bearer ann")] {
                event[place][name] = if is_list { json!([value]) } else { json!(value) };
            }
        }
    }
    let first = invoke(&world, &event).await;
    assert_eq!(first["statusCode"], 201, "{first}");
    assert_eq!(first["body"], "charge 1");
    assert!(!has_header(&first, "idempotency-replayed"));
    let again = invoke(&world, &event).await;
    assert_eq!((&again["statusCode"], &again["body"]), (&first["statusCode"], &first["body"]));
    assert!(has_header(&again, "idempotency-replayed"), "{again}");
    assert_eq!(world.calls(), 1);
    if let Some(headers) = event["headers"].as_object_mut() {
        headers.remove("Idempotency-Key");
    }
    if let Some(headers) = event["multiValueHeaders"].as_object_mut() {
        headers.remove("Idempotency-Key");
    }
    let refused = invoke(&world, &event).await;
    assert_eq!(refused["statusCode"], 400);
}

/// An event of an HTTP API or a function URL, which have the same format.
fn version_2(domain: &str, route: &str) -> Value {
    json!({
        "version": "2.0", "routeKey": route, "rawPath": "/charges", "rawQueryString": "",
        "headers": { "content-type": "text/plain", "host": domain },
        "requestContext": {
            "accountId": "111122223333", "apiId": "api", "domainName": domain,
            "domainPrefix": "api", "requestId": "r-1", "routeKey": route, "stage": "$default",
            "time": "12/Mar/2026:19:03:58 +0000", "timeEpoch": 1_773_342_238_000_i64,
            "http": {
                "method": "POST", "path": "/charges", "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1", "userAgent": "test",
            },
        },
        "body": "RVVSIDUuMDA=", "isBase64Encoded": true,
    })
}

#[tokio::test]
async fn response_bodies_are_sent_unchanged() {
    for (kind, body, sent) in [
        ("image/png", Body::Binary(vec![0, 255, 10]), json!("AP8K")),
        ("text/plain", Body::Text("é".into()), json!("é")),
        ("text/plain", Body::Empty, json!("")),
    ] {
        let world = World::instant();
        let handler = service_fn(move |_| {
            let body = match &body {
                Body::Text(text) => Body::Text(text.clone()),
                Body::Binary(bytes) => Body::Binary(bytes.clone()),
                _ => Body::Empty,
            };
            let response = Response::builder().header("content-type", kind).body(body).unwrap();
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let mut event = version_2("api.example.com", "POST /charges");
        event["headers"]["authorization"] = json!("Bearer ann");
        event["headers"]["idempotency-key"] = json!("k-1");
        for replayed in [false, true] {
            let request: LambdaRequest = serde_json::from_value(event.clone()).unwrap();
            let service = world.layer(&charges()).layer(handler.clone());
            let event = LambdaEvent::new(request, Context::default());
            let response = Adapter::from(service).oneshot(event).await.unwrap();
            let response = serde_json::to_value(response).unwrap();
            assert_eq!(response["body"], sent, "{kind}");
            assert_eq!(response["isBase64Encoded"], kind == "image/png");
            assert_eq!(has_header(&response, "idempotency-replayed"), replayed);
        }
    }
}

/// `lambda_http` decodes these queries, and all bytes that are not UTF-8 become one character.
#[tokio::test]
async fn a_query_that_has_lost_its_bytes_is_refused() {
    let world = World::instant();
    let asked = |value: &str| {
        json!({
            "path": "/charges", "httpMethod": "POST", "isBase64Encoded": false, "body": "EUR 5.00",
            "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:a" } },
            "headers": { "host": "lb.example.com", "idempotency-key": "k-1", "authorization": "Bearer ann" },
            "queryStringParameters": { "a": value },
        })
    };
    for lost in ["%FF", "%FE"] {
        assert_eq!(invoke(&world, &asked(lost)).await["statusCode"], 400, "{lost}");
    }
    assert_eq!(world.calls(), 0);
    assert_eq!(invoke(&world, &asked("%C3%A9")).await["statusCode"], 201);
    assert_eq!(invoke(&world, &asked("%C3%A8")).await["statusCode"], 422);
}

/// `lambda_http` drops the first value of a header that a REST API delivers as the last one and as a list. It keeps both
/// of a load balancer's list.
#[tokio::test]
async fn of_two_keys_or_callers_the_last_counts_or_both_are_refused() {
    let one = with_key(version_1(&version_2("api.example.com", "POST /charges")));
    let mut balanced = json!({
        "path": "/charges", "httpMethod": "POST", "isBase64Encoded": false, "body": "EUR 5.00",
        "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:a" } },
        "multiValueQueryStringParameters": {},
    });
    for (name, list) in
        [("idempotency-key", ["k-0", "k-1"]), ("authorization", ["Bearer bob", "Bearer ann"])]
    {
        let mut two = one.clone();
        two["multiValueHeaders"][name] = json!(list);
        assert_eq!(second_by(&one, &two).await, 201, "{name}");
        let world = World::instant();
        balanced["multiValueHeaders"] = json!({ "host": ["lb.example.com"], "idempotency-key": ["k-1"], "authorization": ["Bearer ann"] });
        assert_eq!(invoke(&world, &balanced).await["statusCode"], 201);
        balanced["multiValueHeaders"][name] = json!(list);
        let refused = invoke(&world, &balanced).await;
        assert!(refused["statusCode"].as_u64() >= Some(400), "{name}: {refused}");
    }
}

/// The order of parameters has no effect, but the order of the values of one parameter has.
#[tokio::test]
async fn the_order_of_query_parameters_has_no_effect() {
    let world = World::instant();
    let asked = |tags: [&str; 2]| {
        json!({
            "path": "/charges", "httpMethod": "POST", "isBase64Encoded": false, "body": "EUR 5.00",
            "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:a" } },
            "multiValueHeaders": { "host": ["lb.example.com"], "idempotency-key": ["k-1"], "authorization": ["Bearer ann"] },
            "multiValueQueryStringParameters": {
                "a": ["1"], "b": ["2"], "c": ["3"], "d": ["4"], "tag": tags,
            },
        })
    };
    for attempt in 0..20 {
        let response = invoke(&world, &asked(["x", "y"])).await;
        assert_eq!(response["statusCode"], 201, "attempt {attempt}");
    }
    assert_eq!(world.calls(), 1);
    let other = invoke(&world, &asked(["y", "x"])).await;
    assert_eq!(other["statusCode"], 422);
}

/// Each sample as a `POST` request: processed once, replayed from the store, and refused without a
/// key.
#[tokio::test]
async fn every_sample_is_processed_once() {
    let (mut samples, mut unnamed) = (0, 0);
    for folder in ["http", "http/aws_lambda_events"] {
        let folder = format!("{}/tests/events/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                println!("{}", path.display());
                // Some samples have a placeholder as host, on which `lambda_http` panics.
                let text = std::fs::read_to_string(path).unwrap().replace("<url-id>", "url-id");
                let mut event: Value = serde_json::from_str(&text).unwrap();
                needs_no_key_or_is_refused(&event).await;
                *method(&mut event) = json!("POST");
                if !event["headers"].is_object() && !event["multiValueHeaders"].is_object() {
                    event["headers"] = json!({});
                }
                unnamed += usize::from(names_its_caller(&mut event));
                is_deduplicated(event).await;
                samples += 1;
            }
        }
    }
    assert_eq!((samples, unnamed), (21, 4));
}

/// Puts a caller into what an authorizer says, where the sample has none: its request would be refused.
fn names_its_caller(event: &mut Value) -> bool {
    let Some(authorizer) = event.pointer_mut("/requestContext/authorizer") else { return false };
    if !authorizer.is_object() {
        return false;
    }
    let (of_token, of_lambda) =
        (authorizer["jwt"]["claims"].is_object(), authorizer["lambda"].is_object());
    if of_token {
        authorizer["jwt"]["claims"]["iss"] = json!("https://a");
        authorizer["jwt"]["claims"]["sub"] = json!("ann");
    }
    if of_lambda {
        authorizer["lambda"]["principalId"] = json!("ann");
    }
    of_token || of_lambda
}

/// Samples have no key: the request is refused, or its method does not need one.
async fn needs_no_key_or_is_refused(event: &Value) {
    let world = World::new();
    let needs_key = ["POST", "PATCH"].iter().any(|name| *name == *method(&mut event.clone()));
    let response = invoke(&world, event).await;
    let expected = if needs_key { (400, 0) } else { (201, 1) };
    assert_eq!((response["statusCode"].as_u64().unwrap(), world.calls()), expected, "{response}");
}

fn is_of_lattice(event: &Value) -> bool {
    event["requestContext"]["serviceNetworkArn"].is_string()
}

fn method(event: &mut Value) -> &mut Value {
    if is_of_lattice(event) {
        return &mut event["method"];
    }
    match event["version"].as_str() {
        Some("2.0") => &mut event["requestContext"]["http"]["method"],
        _ => &mut event["httpMethod"],
    }
}

/// The status of the second of two attempts that reach the function in different ways. The handler is
/// called once.
async fn second_by(first: &Value, second: &Value) -> u64 {
    let world = World::instant();
    let one = invoke(&world, first).await;
    assert_eq!(one["statusCode"], 201, "{one}");
    let two = invoke(&world, second).await;
    assert_eq!(world.calls(), 1, "{second}");
    two["statusCode"].as_u64().unwrap()
}

fn with_key(mut event: Value) -> Value {
    event["headers"]["idempotency-key"] = json!("k-1");
    event["headers"]["authorization"] = json!("Bearer ann");
    event
}

#[tokio::test]
async fn a_route_that_is_added_between_attempts_has_no_effect() {
    let by = |route| with_key(version_2("api.example.com", route));
    assert_eq!(second_by(&by("$default"), &by("POST /charges")).await, 201);
    assert_eq!(second_by(&by("ANY /charges"), &by("POST /charges")).await, 201);
    assert_eq!(second_by(&by("POST /charges"), &by("POST /{any+}")).await, 201);
}

/// The same request in the older format.
fn version_1(newer: &Value) -> Value {
    json!({
        "version": "1.0", "resource": "/charges", "path": "/charges", "httpMethod": "POST",
        "headers": newer["headers"], "multiValueHeaders": {}, "queryStringParameters": null,
        "multiValueQueryStringParameters": null, "pathParameters": null, "stageVariables": null,
        "requestContext": {
            "accountId": "111122223333", "apiId": "api", "domainName": "api.example.com",
            "requestId": "r-1", "stage": "$default", "path": "/charges", "httpMethod": "POST",
            "resourcePath": "/charges", "resourceId": "POST /charges", "identity": {},
        },
        "body": newer["body"], "isBase64Encoded": newer["isBase64Encoded"],
    })
}

#[tokio::test]
async fn the_payload_format_has_no_effect() {
    let newer = with_key(version_2("api.example.com", "POST /charges"));
    let older = version_1(&newer);
    assert_eq!(second_by(&older, &newer).await, 201);
    assert_eq!(second_by(&newer, &older).await, 201);
}

#[tokio::test]
async fn with_keys_for_each_path_route_and_payload_format_have_no_effect() {
    let by = |route| {
        let mut event = version_2("api.example.com", route);
        event["headers"]["authorization"] = json!("Bearer ann");
        event["body"] = json!(r#"{"id":"p-1"}"#);
        event["isBase64Encoded"] = json!(false);
        event
    };
    let first = by("$default");
    for second in [by("POST /charges"), by("POST /{any+}"), version_1(&first)] {
        let world = World::instant();
        let layer = world.layer_with(&charges().key("id"), Http::by_body().one_key_for_each_path());
        invoke_by(&layer, &world, &first).await;
        let again = invoke_by(&layer, &world, &second).await;
        assert_eq!((&again["statusCode"], world.calls()), (&json!(201), 1), "{second}");
    }
}

/// Without API Gateway there are no routes that could have different operations.
#[tokio::test]
async fn paths_of_a_load_balancer_or_a_function_url_can_have_different_keys() {
    let balanced = |path: &str| {
        json!({
            "path": path, "httpMethod": "POST", "isBase64Encoded": false, "body": r#"{"sku":"s-1"}"#,
            "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:a" } },
            "headers": { "host": "lb.example.com", "authorization": "Bearer ann" },
            "queryStringParameters": {},
        })
    };
    let called = |path: &str| {
        let mut event = version_2("abc.lambda-url.eu-west-1.on.aws", "$default");
        event["headers"]["authorization"] = json!("Bearer ann");
        event["body"] = json!(r#"{"sku":"s-1"}"#);
        event["isBase64Encoded"] = json!(false);
        event["rawPath"] = json!(path);
        event["requestContext"]["http"]["path"] = json!(path);
        event
    };
    let ways: [&dyn Fn(&str) -> Value; 2] = [&balanced, &called];
    for send in ways {
        let carts = ["/carts/1/items", "/carts/2/items"];
        let world = World::instant();
        let one_for_all = world.layer(&charges().key("sku"));
        let answers = [
            invoke_by(&one_for_all, &world, &send(carts[0])).await,
            invoke_by(&one_for_all, &world, &send(carts[1])).await,
        ];
        assert_eq!(answers.map(|answer| answer["statusCode"].clone()), [201, 422]);
        let world = World::instant();
        let layer =
            world.layer_with(&charges().key("sku"), Http::by_body().one_key_for_each_path());
        for attempt in 0..2 {
            for (cart, charge) in carts.iter().zip(["charge 1", "charge 2"]) {
                let answer = invoke_by(&layer, &world, &send(cart)).await;
                assert_eq!(answer["body"], charge, "{cart}, attempt {attempt}");
            }
        }
        assert_eq!(world.calls(), 2);
    }
}

#[tokio::test]
async fn another_host_with_a_base_path_is_refused_and_not_processed_again() {
    let at = |host: &str, path: &str, sent: &str| {
        json!({
            "resource": "/{proxy+}", "path": path, "httpMethod": "POST",
            "headers": { "Host": host, "Idempotency-Key": "k-1", "Authorization": "Bearer ann" },
            "multiValueHeaders": {}, "queryStringParameters": null,
            "multiValueQueryStringParameters": null, "pathParameters": { "proxy": "charges" },
            "stageVariables": null,
            "requestContext": {
                "accountId": "111122223333", "apiId": "api", "domainName": host, "requestId": "r-1",
                "stage": "prod", "path": sent, "httpMethod": "POST", "identity": {},
                "resourcePath": "/{proxy+}", "resourceId": "r",
            },
            "body": "{}", "isBase64Encoded": false,
        })
    };
    let own = at("abc.execute-api.eu-west-1.amazonaws.com", "/charges", "/prod/charges");
    let custom = at("api.example.com", "/v1/charges", "/v1/charges");
    assert_eq!(second_by(&own, &custom).await, 422);
}

fn sample(name: &str) -> Value {
    let events = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/events");
    serde_json::from_str(&std::fs::read_to_string(format!("{events}/{name}")).unwrap()).unwrap()
}

/// Without the refusal they would pass: `lambda_http` gives them the method `GET`.
#[tokio::test]
async fn messages_of_a_websocket_api_are_refused_and_connections_pass() {
    let message = sample("aws_lambda_events/example-apigw-websocket-request-without-method.json");
    for (kind, status, calls) in [("MESSAGE", 500, 0), ("CONNECT", 201, 1), ("DISCONNECT", 201, 1)]
    {
        let mut event = message.clone();
        event["requestContext"]["eventType"] = json!(kind);
        let world = World::instant();
        let layer = world.layer_with(&charges(), Http::by_header().needs_key(|_| true));
        let response = invoke_by(&layer, &world, &event).await;
        assert_eq!(
            (response["statusCode"].as_u64(), world.calls()),
            (Some(status), calls),
            "{kind}"
        );
    }
}

#[test]
fn events_of_a_websocket_api_are_no_requests_with_a_key() {
    let layer = World::new().layer(&charges());
    for name in ["-without-method", "", "-disconnect-route"] {
        let name = format!("aws_lambda_events/example-apigw-websocket-request{name}.json");
        let mut event = sample(&name);
        for kind in ["CONNECT", "MESSAGE", "DISCONNECT"] {
            event["requestContext"]["eventType"] = json!(kind);
            let inspected = layer.inspect(&event.to_string(), &Context::default()).unwrap();
            assert!(inspected.is_none(), "{name} {kind}");
        }
    }
}

/// A principal that the auth policy has authenticated is the caller, and whoever has its role.
#[tokio::test]
async fn callers_of_a_lattice_service_are_its_principals() {
    let by = |principal: Option<&str>| {
        let mut event = sample("http/aws_lambda_events/example-vpc-lattice-v2-request.json");
        event["method"] = json!("POST");
        event["headers"]["idempotency-key"] = json!(["k-1"]);
        event["requestContext"]["identity"]["principal"] = json!(principal);
        event
    };
    let role = "arn:aws:iam::111122223333:role/shop";
    let session = |name| format!("arn:aws:sts::111122223333:assumed-role/shop/{name}");
    for (first, second, calls) in [
        (role.to_owned(), role.to_owned(), 1),
        (session("task-1"), session("task-2"), 1),
        (session("task-1"), role.replace("shop", "other"), 2),
    ] {
        let world = World::instant();
        assert_eq!(invoke(&world, &by(Some(&first))).await["statusCode"], 201);
        assert_eq!(invoke(&world, &by(Some(&second))).await["statusCode"], 201);
        assert_eq!(world.calls(), calls, "{first} and {second}");
    }
    let world = World::instant();
    for unknown in [None, Some("")] {
        assert_eq!(invoke(&world, &by(unknown)).await["statusCode"], 403);
    }
    assert_eq!(world.calls(), 0);
}
