//! The trait bounds that the runtime needs, checked by the compiler.

use lambda_idempotency::{
    Call, Failure, Function, Idempotency, Operation, RunContext, RunError, error::InvocationError,
    source::Sqs,
};
use lambda_runtime::{Diagnostic, LambdaEvent, Service};
use serde_json::{Value, value::RawValue};

use crate::support::World;

async fn handler(_: Value, _: Call) -> Result<(), Failure> {
    Ok(())
}

/// Has the bounds of `lambda_runtime::run_concurrent`.
fn concurrent<F>(_: &F)
where
    F: Service<LambdaEvent<Box<RawValue>>, Response: Send + 'static> + Clone + Send + 'static,
    F::Future: Future<Output = Result<F::Response, F::Error>> + Send + 'static,
    F::Error: Into<Diagnostic> + std::fmt::Debug,
{
}

/// The futures are made, but not polled.
#[test]
fn functions_satisfy_the_bounds_of_the_runtime() {
    let function =
        World::new().idempotency().on(Sqs::new(), &Operation::new("a"), handler).unwrap();
    concurrent(&function);
    drop(lambda_runtime::run(function.clone()));
    drop(lambda_runtime::run_concurrent(function));
}

#[test]
fn public_types_are_clone_send_and_sync() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    fn error<T: std::error::Error + Clone + Send + Sync + 'static>() {}
    shared::<Function>();
    shared::<Idempotency>();
    shared::<Operation>();
    error::<InvocationError>();
    error::<RunError>();
    error::<lambda_idempotency::ConfigError>();
}

/// `run` can be awaited in a task of a multi-threaded runtime.
#[test]
fn run_is_send() {
    fn send<T: Send>(_: T) {}
    let idempotency = World::new().idempotency();
    let operation = Operation::new("a");
    send(idempotency.run(&operation, "payload", RunContext::without_deadline(), |_| async {
        Ok::<_, Failure>(1)
    }));
}
