//! How to test a function without AWS: its handler alone, and all of it, with an event.
//!
//! ```console
//! $ cargo test -p lambda-idempotency --example test_a_handler
//! ```

use lambda_idempotency::{
    Call, DynamoDbStore, Failure, Function, Idempotency, Operation, source::Sqs, store::Store,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Payment {
    amount: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    lambda_runtime::tracing::init_default_subscriber();
    lambda_runtime::run(function(DynamoDbStore::from_env().await?)?).await
}

/// The function with any store: DynamoDB when deployed, memory in tests.
fn function(store: impl Store) -> Result<Function, lambda_idempotency::ConfigError> {
    Idempotency::new(store).on(Sqs::new(), &Operation::new("charge").key("paymentId"), charge)
}

async fn charge(payment: Payment, call: Call) -> Result<(), Failure> {
    if call.lost_attempts() > 0 {
        return Err(Failure::permanent("a person has to look whether it was charged"));
    }
    if payment.amount > 1_000 {
        return Err(Failure::transient("over the limit of today"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_idempotency::{MemoryStore, testing};
    use serde_json::{Value, json};

    #[tokio::test]
    async fn a_payment_over_the_limit_is_tried_again() {
        let failure = charge(Payment { amount: 5_000 }, Call::test("p-1")).await.unwrap_err();
        assert!(!failure.is_permanent());
    }

    #[tokio::test]
    async fn after_a_lost_attempt_a_person_decides() {
        let call = Call::test("p-1").with_lost_attempts(1);
        assert!(charge(Payment { amount: 5 }, call).await.unwrap_err().is_permanent());
    }

    #[tokio::test]
    async fn only_the_message_that_failed_is_returned() {
        let message = |id: &str, body: Value| {
            json!({ "messageId": id, "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:payments", "body": body.to_string() })
        };
        let event = json!({ "Records": [
            message("m-1", json!({ "paymentId": "p-1", "amount": 5 })),
            message("m-2", json!({ "paymentId": "p-2", "amount": 5_000 })),
        ] });
        let answer = testing::invoke(&function(MemoryStore::new()).unwrap(), &event).await.unwrap();
        assert_eq!(answer, json!({ "batchItemFailures": [{ "itemIdentifier": "m-2" }] }));
    }
}
