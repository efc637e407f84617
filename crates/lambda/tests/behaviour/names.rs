//! Which work may share the name of an operation in one process.

use lambda_idempotency::{
    Call, ConfigError, Failure, Idempotency, Operation, RunError,
    http::Http,
    source::{Sns, Sqs},
};
use serde_json::{Value, json};

use super::applications::process;
use crate::support::{World, in_child, nothing};

/// Whether the error is of a name, for this reason.
fn is_for(error: &ConfigError, reason: &str) -> bool {
    matches!(error, ConfigError::Name(text) if text.contains("`process`") && text.contains(reason))
}

/// A name is for records or for calls; it can be used again for the same kind only.
#[tokio::test]
async fn a_name_is_used_for_one_kind_of_work_in_a_process() {
    let world = World::instant();
    let idempotency = world.idempotency();
    let run = async |idempotency: &Idempotency, id: u32| {
        world.run(idempotency, &process(), &json!({ "id": id }), 1).await
    };
    let used = |error: &ConfigError| is_for(error, "is used for");

    for _ in 0..2 {
        idempotency.on(Sqs::new(), &process(), nothing).unwrap();
    }
    idempotency.on(Sns::new(), &process(), nothing).unwrap();
    let error = run(&idempotency, 1).await.unwrap_err();
    assert!(matches!(&error, RunError::Config(error) if used(error)), "{error}");
    let text = error.to_string();
    assert!(text.contains("records") && text.contains("`.run(..)`"), "{text}");
    assert_eq!(world.store.write_calls(), 0, "refused before a key is claimed");

    let idempotency = world.idempotency();
    run(&idempotency, 1).await.unwrap();
    run(&idempotency, 2).await.unwrap();
    assert!(used(&idempotency.on(Sqs::new(), &process(), nothing).err().unwrap()));
    idempotency.on(Sqs::new(), &Operation::new("another").key("id"), nothing).unwrap();
}

/// With two handlers, one would be answered from the other's work and never be called.
#[tokio::test]
async fn a_name_has_one_handler_in_a_process() {
    let world = World::new();
    let idempotency = world.idempotency();
    let another = async |_: Value, _: Call| Ok::<_, Failure>(());
    for _ in 0..2 {
        idempotency.on(Sqs::new(), &process(), nothing).unwrap();
    }
    for refused in [
        idempotency.on(Sns::new(), &process(), another),
        idempotency.on(Sqs::new(), &process(), another),
    ] {
        let error = refused.err().unwrap();
        assert!(is_for(&error, "two handlers, `"), "{error}");
    }
    idempotency.on(Sqs::new(), &Operation::new("another").key("id"), another).unwrap();
}

/// Function pointers, and closures that a factory makes, can have one type and do different work.
#[tokio::test]
async fn handlers_of_one_type_are_not_one_handler() {
    type Pointer = fn(Value, Call) -> std::future::Ready<Result<(), Failure>>;
    let pointer: Pointer = |_, _| std::future::ready(Ok(()));
    let another: Pointer = |_, _| std::future::ready(Err("not mine".into()));
    let pays = |account: &'static str| {
        async move |_: Value, _: Call| {
            assert!(!account.is_empty());
            Ok::<_, Failure>(())
        }
    };
    let (queue, topic) = (Sqs::new(), Sns::new());
    let idempotency = World::new().idempotency();
    idempotency.on(queue.clone(), &process(), pointer).unwrap();
    let by_pointers = idempotency.on(topic.clone(), &process(), another);
    let idempotency = World::new().idempotency();
    idempotency.on(queue.clone(), &process(), pays("ann")).unwrap();
    let by_closures = idempotency.on(topic.clone(), &process(), pays("bob"));
    // Nor are they in one function, where the second would be answered from what the first has done.
    let function = World::new().idempotency().function();
    let function = function.on(queue.clone().queue("of-ann"), &process(), pays("ann"));
    let in_a_function = function.on(queue.clone().queue("of-bob"), &process(), pays("bob")).build();
    for refused in [by_pointers, by_closures, in_a_function] {
        let error = refused.err().unwrap();
        assert!(is_for(&error, "two handlers of type"), "{error}");
    }
    idempotency.on(queue.clone(), &Operation::new("another").key("id"), pays("bob")).unwrap();
    World::new().idempotency().on((queue, topic), &process(), pays("ann")).unwrap();
}

/// The type arguments of a generic function do not make it another handler.
#[tokio::test]
async fn a_generic_function_is_one_handler() {
    trait Shop: Send + Sync {}
    async fn place<S: Shop + ?Sized>(_: Value, _: Call) -> Result<(), Failure> {
        Ok(())
    }
    let idempotency = World::new().idempotency();
    for _ in 0..2 {
        idempotency.on(Sqs::new(), &process(), place::<dyn Shop>).unwrap();
    }
}

/// A layer can be cloned, but not made twice: the second could be put around another service.
#[tokio::test]
async fn a_name_has_one_layer_in_a_process() {
    let idempotency = World::new().idempotency();
    let _ = idempotency.http(&process(), Http::by_body()).unwrap();
    let error = idempotency.http(&process(), Http::by_body()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "operation `process` has two layers of `.http(..)`, whose services would answer each \
         other's duplicates; make the layer once and clone it or, for other work, give each \
         operation its own name"
    );
}

/// A refused function leaves its names free for others.
#[tokio::test]
async fn a_refused_function_takes_no_names() {
    let idempotency = World::new().idempotency();
    let _ = idempotency.http(&process(), Http::by_body()).unwrap();
    let free = |number: u32| Operation::new(format!("free-{number}")).key("id");
    let mut function = idempotency.function();
    for number in 0..8 {
        function = function.on(Sqs::new().queue(format!("queue-{number}")), &free(number), nothing);
    }
    let refused = function.on(Sns::new(), &process(), nothing).build().err().unwrap();
    assert!(is_for(&refused, "is used for"), "{refused}");
    for number in 0..8 {
        let _ = idempotency.http(&free(number), Http::by_body()).unwrap();
    }
}

#[test]
fn in_lambda_names_are_unique_in_the_process() {
    for runtime_api in [None, Some("127.0.0.1:9001")] {
        in_child("names::in_lambda", 1, |child| {
            child.envs(runtime_api.map(|api| ("AWS_LAMBDA_RUNTIME_API", api)));
        });
    }
}

/// Each function has its own `Idempotency`.
#[tokio::test]
#[ignore = "run by `in_lambda_names_are_unique_in_the_process`"]
async fn in_lambda() {
    let world = World::new();
    let another = async |_: Value, _: Call| Ok::<_, Failure>(());
    world.with_handler(Sqs::new(), &process(), nothing);
    world.with_handler(Sns::new(), &process(), nothing);
    let second = world.idempotency().on(Sqs::new(), &process(), another);
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_none() {
        assert!(second.is_ok(), "outside Lambda, names are separate for each `Idempotency`");
        return;
    }
    assert!(is_for(&second.unwrap_err(), "two handlers, `"));
    let layer = world.idempotency().http(&process(), Http::by_body());
    assert!(is_for(&layer.err().unwrap(), "is used for"));
}

/// Names that are made from data must not fill the memory, and are accepted.
#[tokio::test]
async fn run_accepts_any_number_of_names() {
    let world = World::instant();
    let idempotency = world.idempotency();
    for number in 0..1100 {
        let operation = Operation::new(format!("process-{number}")).key("id");
        world.run(&idempotency, &operation, &json!({ "id": 1 }), 1).await.unwrap();
    }
    idempotency.on(Sqs::new(), &process(), world.handler()).unwrap();
}
