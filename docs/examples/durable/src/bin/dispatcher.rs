//! Starts one durable execution for each order, however often its message is delivered.
//!
//! Lambda starts a new execution for each invocation of a durable function by an event source mapping, retries
//! included. So the queue invokes this function, and it invokes the durable function by a name that follows from the
//! order: a hash of the idempotency key and of the durable function's name. Its 64 characters are as many as an
//! execution's name may have.
//!
//! The library answers duplicates before they get here. The name covers the gap that is left: this process dies after
//! `Invoke` and before the order is completed in the table. The next attempt uses the same name, and Lambda starts
//! nothing.
//!
//! In AWS: `WORKFLOW` is the durable function's name, without a version, and `WORKFLOW_ALIAS` its alias. This function's
//! role needs `lambda:InvokeFunction` on that alias.

use aws_config::BehaviorVersion;
use aws_sdk_lambda::{
    Client, operation::invoke::InvokeError, primitives::Blob, types::InvocationType,
};
use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, source::Sqs};
use lambda_runtime::Error;
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let workflow =
        Workflow { function: std::env::var("WORKFLOW")?, alias: std::env::var("WORKFLOW_ALIAS")? };
    let lambda = Client::new(&aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await);
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let start = move |order: Value, call: Call| {
        let (lambda, workflow) = (lambda.clone(), workflow.clone());
        async move { start(&lambda, &workflow, &order, &call).await }
    };
    lambda_runtime::run(idempotency.on(Sqs::new(), &operation(), start)?).await
}

/// The durable function.
#[derive(Clone)]
struct Workflow {
    function: String,
    alias: String,
}

fn operation() -> Operation {
    Operation::new("start-order-workflow").key("orderId")
}

/// Starts the execution of this order, if it has not been started.
async fn start(
    lambda: &Client,
    workflow: &Workflow,
    order: &Value,
    call: &Call,
) -> Result<(), Failure> {
    let started = lambda
        .invoke()
        .function_name(&workflow.function)
        .qualifier(&workflow.alias)
        // `Event`: Lambda answers at once. `RequestResponse` would wait for the whole execution.
        .invocation_type(InvocationType::Event)
        // Not `key_hash`: two stacks in one account have the same keys, and each has to start its own execution. Not
        // the alias: a message may be delivered again after a deployment.
        .durable_execution_name(call.subkey(&workflow.function))
        .payload(Blob::new(order.to_string()))
        .send()
        .await;
    match started.map_err(aws_sdk_lambda::error::SdkError::into_service_error) {
        // The payload differs, in the time at which the order was sent for example. It is the same order.
        Ok(_) | Err(InvokeError::DurableExecutionAlreadyStartedException(_)) => Ok(()),
        Err(error) => Err(Failure::transient(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use aws_sdk_lambda::{
        operation::invoke::InvokeOutput, types::error::DurableExecutionAlreadyStartedException,
    };
    use aws_smithy_mocks::{RuleMode, mock, mock_client};
    use lambda_idempotency::{MemoryStore, testing};
    use serde_json::json;

    use super::*;

    fn event(messages: &[(&str, Value)]) -> Value {
        let message = |(id, order): &(&str, Value)| {
            json!({ "messageId": id, "body": order.to_string(), "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders" })
        };
        json!({ "Records": messages.iter().map(message).collect::<Vec<_>>() })
    }

    fn workflow(function: &str) -> Workflow {
        Workflow { function: function.to_owned(), alias: "live".to_owned() }
    }

    /// Delivers an event to a new process with an empty table.
    async fn deliver(lambda: &Client, event: &Value) -> Value {
        deliver_to(lambda, workflow("order-workflow"), event).await
    }

    async fn deliver_to(lambda: &Client, workflow: Workflow, event: &Value) -> Value {
        let lambda = lambda.clone();
        let start = move |order: Value, call: Call| {
            let (lambda, workflow) = (lambda.clone(), workflow.clone());
            async move { start(&lambda, &workflow, &order, &call).await }
        };
        let function =
            Idempotency::new(MemoryStore::new()).on(Sqs::new(), &operation(), start).unwrap();
        testing::invoke(&function, event).await.unwrap()
    }

    #[tokio::test]
    async fn an_order_that_was_sent_twice_starts_one_execution_with_a_valid_name() {
        let started = mock!(Client::invoke)
            .match_requests(|request| {
                let name = request.durable_execution_name().unwrap_or_default();
                // What Lambda allows in a name.
                let valid =
                    name.chars().all(|it| it.is_ascii_alphanumeric() || it == '-' || it == '_');
                name.len() == 64
                    && valid
                    && request.invocation_type() == Some(&InvocationType::Event)
            })
            .then_output(|| InvokeOutput::builder().status_code(202).build());
        let lambda = mock_client!(aws_sdk_lambda, RuleMode::MatchAny, [&started]);
        let order = json!({ "orderId": "o-1" });
        let answer = deliver(&lambda, &event(&[("m-1", order.clone()), ("m-2", order)])).await;
        assert_eq!(answer, json!({ "batchItemFailures": [] }));
        assert_eq!(started.num_calls(), 1);
    }

    /// As after the death of a process, which leaves nothing in the table here; and as in two stacks of an account.
    #[tokio::test]
    async fn a_name_is_the_same_in_each_attempt_and_another_for_each_durable_function() {
        let names = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&names);
        let started = mock!(Client::invoke)
            .match_requests(move |request| {
                seen.lock().unwrap().push(request.durable_execution_name().unwrap().to_owned());
                true
            })
            .then_output(|| InvokeOutput::builder().status_code(202).build());
        let lambda = mock_client!(aws_sdk_lambda, RuleMode::MatchAny, [&started]);
        let event = event(&[("m-1", json!({ "orderId": "o-1" }))]);
        for function in ["test-workflow", "test-workflow", "prod-workflow"] {
            deliver_to(&lambda, workflow(function), &event).await;
        }
        let names = names.lock().unwrap();
        assert_eq!(names[0], names[1]);
        assert_ne!(names[1], names[2]);
    }

    #[tokio::test]
    async fn an_execution_that_was_started_before_completes_the_order() {
        let known = mock!(Client::invoke).then_error(|| {
            let error = DurableExecutionAlreadyStartedException::builder().build();
            InvokeError::DurableExecutionAlreadyStartedException(error)
        });
        let lambda = mock_client!(aws_sdk_lambda, RuleMode::MatchAny, [&known]);
        let answer =
            deliver(&lambda, &event(&[("m-1", json!({ "orderId": "o-1", "sent": "10:05" }))]))
                .await;
        assert_eq!(answer, json!({ "batchItemFailures": [] }));
        assert_eq!(known.num_calls(), 1);
    }

    #[tokio::test]
    async fn an_order_whose_execution_could_not_be_started_is_returned() {
        let busy = mock!(Client::invoke).then_error(|| {
            use aws_sdk_lambda::types::error::TooManyRequestsException;
            InvokeError::TooManyRequestsException(TooManyRequestsException::builder().build())
        });
        let lambda = mock_client!(aws_sdk_lambda, RuleMode::MatchAny, [&busy]);
        let answer = deliver(&lambda, &event(&[("m-1", json!({ "orderId": "o-1" }))])).await;
        assert_eq!(answer, json!({ "batchItemFailures": [{ "itemIdentifier": "m-1" }] }));
    }
}
