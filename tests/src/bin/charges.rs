//! A function that charges cards, and reports each charge to who tests it: the example of `chaos` in the guide.

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, testing};
use lambda_runtime::Error;
use serde::Deserialize;

#[derive(Deserialize)]
struct Payment {
    amount: u64,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let operation = Operation::new("charge").key("paymentId");
    lambda_runtime::run(idempotency.sqs(operation, charge)?).await
}

async fn charge(payment: Payment, call: Call) -> Result<(), Failure> {
    if payment.amount == 0 {
        return Err(Failure::permanent("a payment needs an amount"));
    }
    // .. call the payment service here ..
    testing::effect(&call, "charge");
    Ok(())
}
