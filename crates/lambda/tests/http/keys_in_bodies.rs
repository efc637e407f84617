//! A layer with a key of its own, for an operation that also has other work.

use futures_util::future::join;
use lambda_http::{Body, http::Method};
use lambda_idempotency::{
    Failure, Mode, Operation, RunContext,
    http::{ByBody, Http},
    observe::Freed,
    policy::OnConflict,
};
use serde_json::{Value, json};

use crate::support::{World, post, request};

fn orders() -> Operation {
    Operation::new("orders").key("id")
}

fn by_sku() -> Http<ByBody> {
    Http::by_body().key("sku")
}

fn body(sku: &str, id: &str) -> String {
    json!({ "sku": sku, "id": id }).to_string()
}

#[tokio::test]
async fn the_key_of_the_layer_is_the_one_that_counts() {
    let world = World::new();
    let layer = world.layer_with(&orders(), by_sku());
    assert_eq!(world.answer(&layer, post("not a key", &body("s-1", "a"))).await.status, 201);
    let without_header = request(Method::POST, "/charges", None, &body("s-1", "a"));
    assert!(world.answer(&layer, without_header).await.replayed, "the header is ignored");
    let changed = world.answer(&layer, post("", &body("s-1", "b"))).await;
    assert_eq!(changed.kind(), "mismatch");
    assert_eq!(world.answer(&layer, post("", &body("s-2", "a"))).await.status, 201);
    assert_eq!(world.calls(), 2);
}

#[tokio::test]
async fn a_body_without_the_key_is_refused_and_claims_nothing() {
    let world = World::new();
    let layer = world.layer_with(&orders(), by_sku());
    for text in
        ["", "sku=s-1", "{", "[]", "null", r#"{"sku":null}"#, r#"{"sku":""}"#, r#"{"id":"s-1"}"#]
    {
        let refused = world.answer(&layer, post("k-1", text)).await;
        assert_eq!((refused.status, refused.kind()), (400, "key"), "{text}");
        assert!(!refused.body.contains("s-1"), "{}", refused.body);
    }
    let mut binary = post("", "");
    *binary.body_mut() = Body::Binary(b"{\"sku\":\"\xff\"}".to_vec());
    assert_eq!(world.answer(&layer, binary).await.kind(), "key");
    let mut text = post("", "");
    *text.body_mut() = Body::Binary(body("s-1", "a").into_bytes());
    assert_eq!((world.calls(), world.answer(&layer, text).await.status), (0, 201));
    assert!(world.answer(&layer, post("", &body("s-1", "a"))).await.replayed, "the same bytes");
}

#[tokio::test]
async fn a_mutex_excludes_by_a_key_in_the_body_and_replays_nothing() {
    let world = World::new();
    let mutex = orders().mode(Mode::Mutex).on_conflict(OnConflict::Return);
    let layer = world.layer_with(&mutex, Http::by_body());
    let rebuild = |what: &str| post("", &json!({ "id": "a", "do": what }).to_string());
    let both = join(world.answer(&layer, rebuild("wait")), world.answer(&layer, rebuild("")));
    let (first, second) = both.await;
    assert_eq!((first.status, second.kind()), (201, "in-progress"));
    for calls in 2..4 {
        assert!(!world.answer(&layer, rebuild("")).await.replayed);
        assert_eq!(world.calls(), calls);
    }
    let by_header = Operation::new("charges").mode(Mode::Mutex);
    let refused = world.idempotency().http(&by_header, Http::by_header()).unwrap_err();
    assert!(refused.to_string().contains("handled again"), "{refused}");
}

/// A request counts for its caller, and a call of `run` for nobody.
#[tokio::test]
async fn requests_and_other_work_of_an_operation_share_no_keys() {
    let world = World::instant();
    let idempotency = world.idempotency();
    let (orders, payload) = (orders(), json!({ "sku": "a", "id": "a" }));
    let placed = async |_| Ok::<_, Failure>("placed".to_owned());
    let run = async || {
        let context = RunContext::without_deadline();
        let running = idempotency.run(&orders, &payload, &context, placed);
        world.clock.drive(running).await.unwrap().replayed
    };
    assert!(!run().await);
    for http in [by_sku(), by_sku().all_callers_are_one()] {
        let layer = world.layer_with(&orders, http);
        let calls = world.calls();
        let first = world.answer(&layer, post("", &payload.to_string())).await;
        assert_eq!((first.status, world.calls()), (201, calls + 1), "{}", first.body);
        let kept = idempotency.kept_result::<Value, _>(&orders, &payload).await.unwrap();
        assert_eq!(kept, Some(json!("placed")), "not the response of a request");
        assert_eq!(idempotency.free(&orders, &payload).await.unwrap(), Freed::Completed);
        assert_eq!(idempotency.free(&orders, &payload).await.unwrap(), Freed::WasFree);
        assert!(world.answer(&layer, post("", &payload.to_string())).await.replayed);
        assert!(!run().await);
    }
}
