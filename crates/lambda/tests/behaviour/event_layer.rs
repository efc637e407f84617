//! The layer that makes a function of whole events idempotent.

use std::{io, sync::Arc};

use lambda_idempotency::{Operation, RunError, layers::EventService, outcome::Completion};
use lambda_runtime::{LambdaEvent, service_fn, tower::ServiceBuilder};
use serde::{Deserialize, Serialize};
use tower_service::Service as _;

use crate::{
    secrets_capture::Captured,
    support::{World, diagnostic, serve},
};

#[derive(Deserialize)]
struct Payment {
    id: String,
    amount: Option<u32>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Receipt {
    id: String,
    number: usize,
    request: String,
}

fn by_id() -> Operation {
    Operation::new("charge").key("id")
}

/// A typed handler, as `lambda_runtime` takes it, with the layer around it.
macro_rules! service {
    ($world:expr, $operation:expr) => {{
        let ledger = $world.ledger.clone();
        let charge = move |event: LambdaEvent<Payment>| {
            let ledger = ledger.clone();
            async move {
                let Payment { id, amount } = event.payload;
                if amount == Some(0) {
                    return Err(io::Error::other("nothing to pay: s3cr3t"));
                }
                ledger.record(&id, "");
                let request = event.context.request_id;
                Ok(Receipt { number: ledger.total(), id, request })
            }
        };
        let layer = $world.idempotency().event($operation).unwrap();
        ServiceBuilder::new().layer(layer).service(service_fn(charge))
    }};
}

#[tokio::test]
async fn the_first_event_is_processed_and_the_later_ones_get_its_answer() {
    let world = World::instant();
    let service = service!(world, &by_id());
    let receipt =
        |id: &str, number| Receipt { id: id.to_owned(), number, request: "request-1".to_owned() };
    for _ in 0..2 {
        let answer = serve(service.clone(), r#"{"id":"a"}"#, world.context()).await;
        assert_eq!(answer.unwrap(), receipt("a", 1));
    }
    let answer = serve(service.clone(), r#"{"id":"b"}"#, world.context()).await;
    assert_eq!(answer.unwrap(), receipt("b", 2));
    let other = service!(world, &Operation::new("refund").key("id"));
    let answer = serve(other, r#"{"id":"a"}"#, world.context()).await;
    assert_eq!(answer.unwrap(), receipt("a", 3), "another operation");
}

#[tokio::test]
async fn a_replay_can_be_told_from_the_first_answer() {
    let world = World::instant();
    let ledger = world.ledger.clone();
    let charge = move |event: LambdaEvent<Payment>| {
        ledger.record(event.payload.id, "");
        async { Ok::<_, io::Error>(serde_json::json!({ "charged": true })) }
    };
    let hook = |answer: &mut serde_json::Value, completion: Option<Completion>| {
        assert!(completion.unwrap().done_at.is_some(), "it says when the work was done");
        assert!(answer.get("replayed").is_none(), "each replay is made of the first answer");
        answer["replayed"] = true.into();
    };
    let layer = world.idempotency().event(&by_id()).unwrap().on_replay(hook);
    let service = ServiceBuilder::new().layer(layer).service(service_fn(charge));
    let answers = [r#"{"charged":true}"#, r#"{"charged":true,"replayed":true}"#];
    for answer in [answers[0], answers[1], answers[1]] {
        let found = serve(service.clone(), r#"{"id":"a"}"#, world.context()).await.unwrap();
        assert_eq!(found.to_string(), answer);
    }
    world.ledger.assert_once("a");
}

type Hook = fn(&mut serde_json::Value, Option<Completion>);

#[tokio::test]
async fn a_hook_for_replays_that_breaks_the_answer_changes_nothing_and_is_told_of() {
    let (world, captured) = (World::instant(), Captured::default());
    let service = |hook: Hook| {
        let layer = world.idempotency().event(&by_id()).unwrap().on_replay(hook);
        let charge = |event: LambdaEvent<Payment>| async move {
            Ok::<_, io::Error>(Receipt { id: event.payload.id, number: 1, request: String::new() })
        };
        ServiceBuilder::new().layer(layer).service(service_fn(charge))
    };
    let hooks: [(&str, Hook); 3] = [
        (r#"{"id":"a"}"#, |answer, _| answer["number"] = "again".into()),
        (r#"{"id":"b"}"#, |answer, _| *answer = serde_json::json!({ "replayed": true })),
        (r#"{"id":"c"}"#, |_, _| panic!("deliberate")),
    ];
    let guard = captured.start_as_lambda_does();
    for (event, hook) in hooks {
        let service = service(hook);
        let first = serve(service.clone(), event, world.context()).await.unwrap();
        let again = serve(service, event, world.context()).await.unwrap();
        assert_eq!(first, again);
    }
    drop(guard);
    assert_eq!(captured.text().matches("on_replay").count(), 3, "{}", captured.text());
}

#[tokio::test]
async fn without_an_expression_the_whole_event_is_the_key() {
    let world = World::instant();
    let service = service!(world, &Operation::new("charge"));
    for (event, executed) in [
        (r#"{"id":"a","amount":1}"#, 1),
        (r#" {"amount":1, "id":"\u0061"} "#, 1),
        (r#"{"id":"a","amount":2}"#, 2),
    ] {
        serve(service.clone(), event, world.context()).await.unwrap();
        assert_eq!(world.ledger.executed("a"), executed, "{event}");
    }
}

#[tokio::test]
async fn errors_contain_their_kind_and_not_the_message() {
    let world = World::instant();
    let service = service!(world, &by_id().fingerprint("amount"));
    let failing = serve(service.clone(), r#"{"id":"a","amount":0}"#, world.context()).await;
    let (kind, text) = diagnostic(failing.unwrap_err());
    assert_eq!(kind, "Idempotency.HandlerFailed");
    assert!(text.contains("io::") && !text.contains("s3cr3t"), "{text}");
    serve(service.clone(), r#"{"id":"a","amount":1}"#, world.context()).await.unwrap();
    for (event, expected) in [
        (r#"{"id":"a","amount":2}"#, "Idempotency.Mismatch"),
        (r#"{"id":"b"}"#, "Idempotency.Rejected"),
        (r#"{"id":"","amount":2}"#, "Idempotency.Rejected"),
        (r#"{"amount":2}"#, "Idempotency.Rejected"),
        (r#"[]"#, "Idempotency.Rejected"),
        ("null", "Idempotency.Rejected"),
    ] {
        let error = serve(service.clone(), event, world.context()).await.unwrap_err();
        assert_eq!(diagnostic(error).0, expected, "{event}");
    }
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn tenants_are_kept_apart() {
    let world = World::instant();
    let service = service!(world, &by_id());
    for tenant in [None, Some("t-1"), Some("t-2"), Some(""), Some("t-1"), None] {
        let mut context = world.context();
        context.tenant_id = tenant.map(ToOwned::to_owned);
        serve(service.clone(), r#"{"id":"a"}"#, context).await.unwrap();
    }
    assert_eq!(world.ledger.executed("a"), 4);
}

/// Tower requires that `call` goes to the instance on which `poll_ready` succeeded.
#[tokio::test]
async fn call_goes_to_the_instance_that_was_polled_ready() {
    struct Picky(Arc<()>, bool);
    impl Clone for Picky {
        fn clone(&self) -> Self {
            Self(Arc::clone(&self.0), false)
        }
    }
    impl tower_service::Service<LambdaEvent<Payment>> for Picky {
        type Response = u32;
        type Error = io::Error;
        type Future = std::future::Ready<Result<u32, io::Error>>;
        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), io::Error>> {
            self.1 = true;
            std::task::Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: LambdaEvent<Payment>) -> Self::Future {
            assert!(std::mem::take(&mut self.1), "called before it was ready");
            std::future::ready(Ok(1))
        }
    }
    let world = World::instant();
    let layer = world.idempotency().event(&by_id()).unwrap();
    let mut service: EventService<_, Payment> =
        tower_layer::Layer::layer(&layer, Picky(Arc::new(()), false));
    for id in ["a", "b"] {
        std::future::poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
        let payload = serde_json::value::to_raw_value(&serde_json::json!({ "id": id })).unwrap();
        let answer = service.call(LambdaEvent::new(payload, world.context())).await;
        assert_eq!(answer.unwrap(), 1);
    }
}

#[tokio::test]
async fn the_handler_is_not_called_during_an_outage() {
    let world = World::new();
    let service = service!(world, &by_id());
    world.store.outage();
    let serving = serve(service.clone(), r#"{"id":"a"}"#, world.context());
    let error = world.clock.drive(serving).await.unwrap_err();
    assert!(matches!(
        &error,
        lambda_idempotency::error::InvocationError::Run(RunError::Store(e)) if e.is_transient()
    ));
    assert_eq!(diagnostic(error).0, "Idempotency.Store");
    world.ledger.assert_never("a");
}
