//! Whose work a key is: of another application, of another use of the name, of a call around this one.

use std::time::Duration;

use lambda_idempotency::{
    Call, ConfigError, Failure, Idempotency, OnConflict, OnPermanentFailure, Operation, RunContext,
    RunError, outcome::Foreign,
};
use serde_json::{Value, json};

use crate::support::{World, batch, diagnostic, order, serve};

fn process() -> Operation {
    Operation::new("process").key("id")
}

impl World {
    fn application(&self, name: &str) -> Idempotency {
        self.idempotency().application(name)
    }
}

fn foreign(ours: Option<&str>) -> impl Fn(&Foreign) -> bool {
    move |foreign| {
        (&*foreign.operation, &*foreign.theirs, foreign.ours.as_deref())
            == ("process", "billing", ours)
    }
}

/// Billing and shipping on one table, both with `process` by `orderId`.
#[tokio::test]
async fn work_of_another_application_is_no_answer() {
    let world = World::new();
    let billing = world.application("billing").sqs(process(), world.handler()).unwrap();
    let shipping = world.application("shipping").sqs(process(), world.handler()).unwrap();
    let event = batch([order("m-1", "a", "")]);
    assert!(world.returned(&billing, &event).await.is_empty());
    for _ in 0..2 {
        assert_eq!(world.returned(&shipping, &event).await, ["m-1"], "it goes back");
    }
    assert_eq!(world.ledger.total(), 1);
    assert!(world.returned(&billing, &event).await.is_empty(), "and billing is as it was");
    assert_eq!(world.ledger.total(), 1);
    world.clock.advance(Duration::from_hours(25));
    assert!(world.returned(&shipping, &event).await.is_empty(), "what has expired is nobody's");
    assert_eq!(world.ledger.total(), 2);
}

/// No policy that acknowledges without the work being done means the work of others.
#[tokio::test]
async fn no_policy_acknowledges_it() {
    let world = World::new();
    let lenient = || {
        process()
            .on_conflict(OnConflict::Skip)
            .on_permanent_failure(OnPermanentFailure::Acknowledge)
    };
    let billing = world.application("billing").sqs(process(), world.handler()).unwrap();
    let shipping = world.application("shipping").sqs(lenient(), world.handler()).unwrap();
    for (message, id, fate) in
        [("m-1", "failed", "fail"), ("m-2", "given up", "give up"), ("m-3", "stopped", "sleep")]
    {
        let event = batch([order(message, id, fate)]);
        assert_eq!(world.returned(&billing, &event).await, [message], "{id}");
        let event = batch([order(message, id, "")]);
        assert_eq!(world.returned(&shipping, &event).await, [message], "{id}");
    }
    assert_eq!(world.ledger.total(), 0);
}

#[tokio::test]
async fn the_refusal_names_both_and_what_to_do() {
    let world = World::new();
    let charge = async |_: Call| Ok::<_, Failure>(1);
    let payment = json!({ "id": "s3cr3t" });
    let billing = world.application("billing");
    billing.run(&process(), &payment, RunContext::without_deadline(), charge).await.unwrap();
    for (other, ours) in
        [(world.application("shipping"), Some("shipping")), (world.idempotency(), None)]
    {
        let refused = other
            .run(&process(), &payment, RunContext::without_deadline(), charge)
            .await
            .unwrap_err();
        assert!(matches!(&refused, RunError::Foreign(it) if foreign(ours)(it)), "{refused}");
        assert!(!refused.is_transient());
        let (kind, text) = diagnostic(refused.into());
        assert_eq!(kind, "Idempotency.Foreign");
        for part in [
            "`billing`",
            ours.unwrap_or("without a name"),
            "`process`",
            ".application(\"billing\")",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}

/// A function that was renamed, and both of a blue/green deployment, go on with one name.
#[tokio::test]
async fn one_name_in_two_functions_is_one_application() {
    let world = World::new();
    let old = world.application("orders").sqs(process(), world.handler()).unwrap();
    let new = world.application("orders-v2").application("orders");
    let new = new.sqs(process(), world.handler()).unwrap();
    let event = batch([order("m-1", "a", "")]);
    for function in [&old, &new, &old] {
        assert!(world.returned(function, &event).await.is_empty());
    }
    assert_eq!(world.ledger.total(), 1);
}

/// Those of earlier versions, and of Powertools.
#[tokio::test]
async fn records_without_a_name_are_anybodys() {
    let world = World::new();
    let charge = async |_: Call| Ok::<_, Failure>(1);
    let payment = json!({ "id": "a" });
    world
        .idempotency()
        .run(&process(), &payment, RunContext::without_deadline(), charge)
        .await
        .unwrap();
    let run = world
        .application("billing")
        .run(&process(), &payment, RunContext::without_deadline(), charge)
        .await
        .unwrap();
    assert!(run.replayed);
}

#[tokio::test]
async fn a_name_that_records_cannot_bear_does_not_start() {
    let world = World::new();
    let bad = || world.application("two words");
    let refused = |error: &ConfigError| matches!(error, ConfigError::Application { .. });
    assert!(refused(&bad().sqs(process(), world.handler()).err().unwrap()));
    assert!(refused(&bad().event::<Value>(process()).err().unwrap()));
    let run = bad()
        .run(&process(), &json!({ "id": 1 }), RunContext::without_deadline(), async |_| {
            Ok::<_, Failure>(1)
        })
        .await;
    assert!(matches!(run, Err(RunError::Config(error)) if refused(&error)));
    assert!(bad().application("shop").sqs(process(), world.handler()).is_ok(), "put right");
}

/// In a process of its own, since the environment belongs to all tests of this one.
#[test]
fn the_function_names_the_application_unless_a_variable_does() {
    for (function, variable, expected) in [
        (None, None, ""),
        (Some("orders-v2"), None, "orders-v2"),
        (Some("orders-v2"), Some("orders"), "orders"),
        (Some("orders-v2"), Some(""), "refused"),
    ] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "whose_work::child", "--ignored", "--test-threads=1"]);
        child.env_remove("AWS_LAMBDA_FUNCTION_NAME").env_remove("IDEMPOTENCY_APPLICATION");
        child.envs(function.map(|name| ("AWS_LAMBDA_FUNCTION_NAME", name)));
        child.envs(variable.map(|name| ("IDEMPOTENCY_APPLICATION", name)));
        let output = child.env("BEHAVIOUR_EXPECTED", expected).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{expected}: {text}");
    }
}

#[tokio::test]
#[ignore = "run by `the_function_names_the_application_unless_a_variable_does`"]
async fn child() {
    let world = World::new();
    let charge = async |_: Call| Ok::<_, Failure>(1);
    let run = world
        .idempotency()
        .run(&process(), &json!({ "id": 1 }), RunContext::without_deadline(), charge)
        .await;
    let expected = std::env::var("BEHAVIOUR_EXPECTED").unwrap();
    if expected == "refused" {
        let text = run.unwrap_err().to_string();
        assert!(text.contains("IDEMPOTENCY_APPLICATION"), "{text}");
        return;
    }
    run.unwrap();
    // Another application is told what name the record bears.
    let charge = async |_: Call| Ok::<_, Failure>(1);
    let run = world
        .application("somebody-else")
        .run(&process(), &json!({ "id": 1 }), RunContext::without_deadline(), charge)
        .await;
    match run {
        Err(RunError::Foreign(foreign)) => assert_eq!(&*foreign.theirs, expected),
        other => assert!(expected.is_empty() && other.unwrap().replayed),
    }
}

/// A record, a whole event and a call are three things; each may be used again as what it is.
#[tokio::test]
async fn a_name_is_used_for_one_thing_in_a_process() {
    let world = World::new();
    let idempotency = world.idempotency();
    let run = |idempotency: Idempotency, id: u32| async move {
        let payload = json!({ "id": id });
        idempotency
            .run(&process(), &payload, RunContext::without_deadline(), async |_| {
                Ok::<_, Failure>(1)
            })
            .await
    };
    let used = |error: &ConfigError| matches!(error, ConfigError::NameInUse { .. });

    for _ in 0..2 {
        idempotency.sqs(process(), world.handler()).unwrap();
    }
    idempotency.sns(process(), world.handler()).unwrap();
    let error = idempotency.event::<Value>(process()).err().unwrap();
    assert!(used(&error), "{error}");
    let text = error.to_string();
    assert!(text.contains("records") && text.contains("`.event(..)`"), "{text}");
    let error = run(idempotency.clone(), 1).await.unwrap_err();
    assert!(matches!(&error, RunError::Config(error) if used(error)), "{error}");
    assert_eq!(world.store.write_calls(), 0, "found before anything is claimed");

    let idempotency = world.idempotency();
    run(idempotency.clone(), 1).await.unwrap();
    run(idempotency.clone(), 2).await.unwrap();
    assert!(used(&idempotency.sqs(process(), world.handler()).err().unwrap()));
    idempotency.event::<Value>(Operation::new("another").key("id")).unwrap();
}

/// One of two handlers would be answered from the other's work, and never run.
#[tokio::test]
async fn a_name_has_one_handler_in_a_process() {
    let world = World::new();
    let idempotency = world.idempotency();
    let one = async |_: Value, _: Call| Ok::<_, Failure>(());
    let another = async |_: Value, _: Call| Ok::<_, Failure>(());
    for _ in 0..2 {
        idempotency.sqs(process(), one).unwrap();
    }
    for refused in [idempotency.sns(process(), another), idempotency.sqs(process(), another)] {
        let error = refused.err().unwrap();
        assert!(matches!(error, ConfigError::TwoHandlers { .. }), "{error}");
        assert!(error.to_string().contains("`process`"), "{error}");
    }
    idempotency.sqs(Operation::new("another").key("id"), another).unwrap();
}

/// Two functions can have one type of pointer.
#[tokio::test]
async fn a_handler_behind_a_pointer_is_not_taken_for_another_of_its_type() {
    type Pointer = fn(Value, Call) -> std::future::Ready<Result<(), Failure>>;
    let idempotency = World::new().idempotency();
    let one: Pointer = |_, _| std::future::ready(Ok(()));
    let another: Pointer = |_, _| std::future::ready(Err("not mine".into()));
    idempotency.sqs(process(), one).unwrap();
    let error = idempotency.sns(process(), another).err().unwrap();
    assert!(matches!(error, ConfigError::UnknownHandler { .. }), "{error}");
}

/// Such a function is one handler, whatever it is generic over.
#[tokio::test]
async fn a_generic_function_is_one_handler() {
    trait Shop: Send + Sync {}
    async fn place<S: Shop + ?Sized>(_: Value, _: Call) -> Result<(), Failure> {
        Ok(())
    }
    let idempotency = World::new().idempotency();
    for _ in 0..2 {
        idempotency.sqs(process(), place::<dyn Shop>).unwrap();
    }
}

/// A layer is cloned, and not made twice: the second may be put around another service.
#[tokio::test]
async fn a_name_has_one_layer_in_a_process() {
    let idempotency = World::new().idempotency();
    idempotency.event::<Value>(process()).unwrap();
    let error = idempotency.event::<Value>(process()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "operation `process` has two layers of `.event(..)`, whose services would answer each \
         other's duplicates; make the layer once and clone it or, for other work, give each \
         operation its own name"
    );
}

/// The function can be built without the operation that was refused.
#[tokio::test]
async fn a_function_that_is_not_built_takes_no_names() {
    let idempotency = World::new().idempotency();
    let handler = async |_: Value, _: Call| Ok::<_, Failure>(());
    idempotency.event::<Value>(process()).unwrap();
    let free = |number: u32| Operation::new(format!("free-{number}")).key("id");
    let mut function = idempotency.function();
    for number in 0..8 {
        function = function.sqs(free(number).queue(format!("queue-{number}")), handler);
    }
    let refused = function.sns(process(), handler).build().err().unwrap();
    assert!(matches!(refused, ConfigError::NameInUse { .. }), "{refused}");
    for number in 0..8 {
        idempotency.event::<Value>(free(number)).unwrap();
    }
}

/// In a process of its own, since the environment belongs to all tests of this one.
#[test]
fn where_lambda_runs_it_names_are_those_of_the_process() {
    for runtime_api in [None, Some("127.0.0.1:9001")] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "whose_work::in_lambda", "--ignored", "--test-threads=1"]);
        child.env_remove("AWS_LAMBDA_RUNTIME_API");
        child.envs(runtime_api.map(|api| ("AWS_LAMBDA_RUNTIME_API", api)));
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{runtime_api:?}: {text}");
    }
}

/// Two `Idempotency` that were made separately.
#[tokio::test]
#[ignore = "run by `where_lambda_runs_it_names_are_those_of_the_process`"]
async fn in_lambda() {
    let world = World::new();
    let one = async |_: Value, _: Call| Ok::<_, Failure>(());
    let another = async |_: Value, _: Call| Ok::<_, Failure>(());
    world.idempotency().sqs(process(), one).unwrap();
    world.idempotency().sns(process(), one).unwrap();
    let second = world.idempotency().sqs(process(), another);
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_none() {
        assert!(second.is_ok(), "tests have handlers and stores of their own");
        return;
    }
    assert!(matches!(second, Err(ConfigError::TwoHandlers { .. })));
    let layer = world.idempotency().event::<Value>(process());
    assert!(matches!(layer, Err(ConfigError::NameInUse { .. })));
}

/// Names that are made of data neither fill the memory nor are refused.
#[tokio::test]
async fn calls_may_have_any_number_of_names() {
    let world = World::new();
    let idempotency = world.idempotency();
    for number in 0..1100 {
        let operation = Operation::new(format!("process-{number}")).key("id");
        let one = async |_: Call| Ok::<_, Failure>(1);
        idempotency
            .run(&operation, &json!({ "id": 1 }), RunContext::without_deadline(), one)
            .await
            .unwrap();
    }
    idempotency.sqs(process(), world.handler()).unwrap();
}

/// It would wait for itself, each time until its deadline, and end in the dead-letter queue.
#[tokio::test]
async fn a_call_inside_itself_fails_at_once() {
    let world = World::new();
    let idempotency = world.idempotency();
    let inner = idempotency.clone();
    let charge = async |id: u32| {
        let one = async |_: Call| Ok::<_, Failure>(id);
        inner.run(&process(), &json!({ "id": id }), RunContext::without_deadline(), one).await
    };
    let nested = async |_: Call| {
        tokio::task::yield_now().await;
        let refused = charge(1).await.unwrap_err();
        assert!(matches!(&refused, RunError::Nested { operation } if &**operation == "process"));
        assert!(!refused.is_transient());
        Ok::<_, Failure>(charge(2).await?.result)
    };
    let run = idempotency
        .run(&process(), &json!({ "id": 1 }), RunContext::without_deadline(), nested)
        .await
        .unwrap();
    assert_eq!(run.result, 2, "another key is other work");
    assert_eq!(world.store.write_calls(), 4, "two keys, each claimed and completed");
    // Once the outer call has ended, it is a duplicate like any other.
    assert!(charge(1).await.unwrap().replayed);
}

/// Nor is a panic, a drop or another store taken for being inside.
#[tokio::test]
async fn only_the_very_call_is_inside() {
    let (world, other) = (World::new(), World::new());
    let payload = json!({ "id": 1 });
    let elsewhere = other.idempotency();
    let across = async |_: Call| {
        let run = elsewhere
            .run(&process(), &payload, RunContext::without_deadline(), async |_| {
                Ok::<_, Failure>(1)
            })
            .await;
        Ok::<_, Failure>(run?.result)
    };
    let idempotency = world.idempotency();
    idempotency.run(&process(), &payload, RunContext::without_deadline(), across).await.unwrap();

    let payload = json!({ "id": 2 });
    let panics = async |_: Call| -> Result<u32, Failure> { panic!("no luck") };
    idempotency
        .run(&process(), &payload, RunContext::without_deadline(), panics)
        .await
        .unwrap_err();
    let run = idempotency
        .run(&process(), &payload, RunContext::without_deadline(), async |_| Ok::<_, Failure>(1))
        .await;
    assert_eq!(run.unwrap().result, 1);
}

#[tokio::test]
async fn an_event_of_another_application_is_an_error() {
    use lambda_runtime::{LambdaEvent, service_fn, tower::ServiceBuilder};
    let world = World::new();
    let charge = async |_: LambdaEvent<Value>| Ok::<_, std::io::Error>("charged".to_owned());
    let service = |name: &str| {
        ServiceBuilder::new()
            .layer(world.application(name).event::<Value>(process()).unwrap())
            .service(service_fn(charge))
    };
    let event = r#"{"id":"a"}"#;
    serve(service("billing"), event, world.context()).await.unwrap();
    let refused = serve(service("shipping"), event, world.context()).await.unwrap_err();
    assert_eq!(diagnostic(refused).0, "Idempotency.Foreign");
}
