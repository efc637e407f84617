//! Which work may share the name of an operation in one process.

use lambda_idempotency::{
    Call, ConfigError, Failure, Idempotency, Operation, RunContext, RunError,
    handler::Handler,
    source::{Sns, Sqs},
};
use serde_json::{Value, json};

use super::applications::process;
use crate::support::{World, in_child};

/// Whether the error is of a name, for this reason.
fn is_for(error: &ConfigError, reason: &str) -> bool {
    matches!(error, ConfigError::Name(text) if text.contains("`process`") && text.contains(reason))
}

async fn nothing(_: Value, _: Call) -> Result<(), Failure> {
    Ok(())
}

/// A name is for records, for whole events, or for calls; it can be used again for the same kind only.
#[tokio::test]
async fn a_name_is_used_for_one_kind_of_work_in_a_process() {
    let world = World::instant();
    let idempotency = world.idempotency();
    let run = |idempotency: Idempotency, id: u32| async move {
        let payload = json!({ "id": id });
        idempotency
            .run(&process(), &payload, RunContext::without_deadline(), async |_| {
                Ok::<_, Failure>(1)
            })
            .await
    };
    let used = |error: &ConfigError| is_for(error, "is used for");

    for _ in 0..2 {
        idempotency.on(Sqs::new(), &process(), nothing).unwrap();
    }
    idempotency.on(Sns::new(), &process(), nothing).unwrap();
    let error = idempotency.event::<Value>(&process()).err().unwrap();
    assert!(used(&error), "{error}");
    let text = error.to_string();
    assert!(text.contains("records") && text.contains("`.event(..)`"), "{text}");
    let error = run(idempotency.clone(), 1).await.unwrap_err();
    assert!(matches!(&error, RunError::Config(error) if used(error)), "{error}");
    assert_eq!(world.store.write_calls(), 0, "refused before a key is claimed");

    let idempotency = world.idempotency();
    run(idempotency.clone(), 1).await.unwrap();
    run(idempotency.clone(), 2).await.unwrap();
    assert!(used(&idempotency.on(Sqs::new(), &process(), nothing).err().unwrap()));
    idempotency.event::<Value>(&Operation::new("another").key("id")).unwrap();
}

/// With two handlers, one would be answered from the other's work and never be called.
#[tokio::test]
async fn a_name_has_one_handler_in_a_process() {
    let world = World::new();
    let idempotency = world.idempotency();
    let handler = async |_: Value, _: Call| Ok::<_, Failure>(());
    let another = async |_: Value, _: Call| Ok::<_, Failure>(());
    for _ in 0..2 {
        idempotency.on(Sqs::new(), &process(), handler).unwrap();
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

/// Two functions can have the same type of function pointer, so a pointer does not identify its handler.
#[tokio::test]
async fn a_handler_behind_a_function_pointer_is_refused_for_a_second_source() {
    type Pointer = fn(Value, Call) -> std::future::Ready<Result<(), Failure>>;
    let idempotency = World::new().idempotency();
    let handler: Pointer = |_, _| std::future::ready(Ok(()));
    let another: Pointer = |_, _| std::future::ready(Err("not mine".into()));
    idempotency.on(Sqs::new(), &process(), handler).unwrap();
    let error = idempotency.on(Sns::new(), &process(), another).err().unwrap();
    assert!(is_for(&error, "two handlers of type"), "{error}");
}

/// A factory makes closures of one type, which do different work.
#[tokio::test]
async fn closures_of_one_factory_are_not_one_handler() {
    fn pays(account: &'static str) -> impl Handler<Value, Result<(), Failure>> {
        async move |_, _| {
            assert!(!account.is_empty());
            Ok(())
        }
    }
    let idempotency = World::new().idempotency();
    idempotency.on(Sqs::new(), &process(), pays("ann")).unwrap();
    let error = idempotency.on(Sns::new(), &process(), pays("bob")).err().unwrap();
    assert!(is_for(&error, "two handlers of type"), "{error}");
    idempotency.on(Sqs::new(), &Operation::new("another").key("id"), pays("bob")).unwrap();
}

/// Nor are they in one function, where the second would be answered from what the first has done.
#[tokio::test]
async fn closures_of_one_factory_are_not_one_handler_of_a_function() {
    let pays = |account: &'static str| {
        async move |_: Value, _: Call| {
            assert!(!account.is_empty());
            Ok::<_, Failure>(())
        }
    };
    let function = World::new()
        .idempotency()
        .function()
        .on(Sqs::new().queue("of-ann"), &process(), pays("ann"))
        .on(Sqs::new().queue("of-bob"), &process(), pays("bob"))
        .build();
    let error = function.expect_err("bob's handler would never be called for a key of ann's");
    assert!(is_for(&error, "two handlers of type"), "{error}");
    let both = (Sqs::new(), Sns::new());
    World::new().idempotency().on(both, &process(), pays("ann")).unwrap();
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
    idempotency.event::<Value>(&process()).unwrap();
    let error = idempotency.event::<Value>(&process()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "operation `process` has two layers of `.event(..)`, whose services would answer each \
         other's duplicates; make the layer once and clone it or, for other work, give each \
         operation its own name"
    );
}

/// A refused function leaves its names free for others.
#[tokio::test]
async fn a_refused_function_takes_no_names() {
    let idempotency = World::new().idempotency();
    let handler = async |_: Value, _: Call| Ok::<_, Failure>(());
    idempotency.event::<Value>(&process()).unwrap();
    let free = |number: u32| Operation::new(format!("free-{number}")).key("id");
    let mut function = idempotency.function();
    for number in 0..8 {
        function = function.on(Sqs::new().queue(format!("queue-{number}")), &free(number), handler);
    }
    let refused = function.on(Sns::new(), &process(), handler).build().err().unwrap();
    assert!(is_for(&refused, "is used for"), "{refused}");
    for number in 0..8 {
        idempotency.event::<Value>(&free(number)).unwrap();
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
    let one = async |_: Value, _: Call| Ok::<_, Failure>(());
    let another = async |_: Value, _: Call| Ok::<_, Failure>(());
    world.idempotency().on(Sqs::new(), &process(), one).unwrap();
    world.idempotency().on(Sns::new(), &process(), one).unwrap();
    let second = world.idempotency().on(Sqs::new(), &process(), another);
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_none() {
        assert!(second.is_ok(), "outside Lambda, names are separate for each `Idempotency`");
        return;
    }
    assert!(is_for(&second.unwrap_err(), "two handlers, `"));
    let layer = world.idempotency().event::<Value>(&process());
    assert!(is_for(&layer.err().unwrap(), "is used for"));
}

/// Names that are made from data must not fill the memory, and are accepted.
#[tokio::test]
async fn run_accepts_any_number_of_names() {
    let world = World::instant();
    let idempotency = world.idempotency();
    for number in 0..1100 {
        let operation = Operation::new(format!("process-{number}")).key("id");
        let handler = async |_: Call| Ok::<_, Failure>(1);
        idempotency
            .run(&operation, &json!({ "id": 1 }), RunContext::without_deadline(), handler)
            .await
            .unwrap();
    }
    idempotency.on(Sqs::new(), &process(), world.handler()).unwrap();
}
