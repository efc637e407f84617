//! A function that charges cards, and reports each charge to who tests it: the example of `chaos` in the guide, with
//! every source that `chaos` has.

use lambda_idempotency::{
    Call, DynamoDbStore, Failure, Idempotency, Operation,
    source::{DynamoDbStream, EventBridge, Kinesis, Sns, Sqs},
    testing,
};
use lambda_runtime::Error;
use serde::Deserialize;

#[derive(Deserialize)]
struct Payment {
    amount: u64,
}

/// A payment that was written to a table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inserted {
    new_image: Payment,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let by_payment = |name: &'static str| Operation::new(name).key("paymentId");
    let function = idempotency
        .function()
        .on(Sqs::new(), &by_payment("charge-queued"), charge)
        .on(Sns::new(), &by_payment("charge-published"), charge)
        .on(EventBridge::new(), &by_payment("charge-announced"), charge)
        .on(Kinesis::new(), &by_payment("charge-streamed"), charge)
        .on(
            DynamoDbStream::new(),
            &Operation::new("charge-inserted").key("newImage.paymentId"),
            charge_inserted,
        )
        .build()?;
    lambda_runtime::run(function).await
}

async fn charge(payment: Payment, call: Call) -> Result<(), Failure> {
    if payment.amount == 0 {
        return Err(Failure::permanent("a payment needs an amount"));
    }
    // .. call the payment service here ..
    testing::effect(&call, "charge");
    Ok(())
}

async fn charge_inserted(inserted: Inserted, call: Call) -> Result<(), Failure> {
    charge(inserted.new_image, call).await
}
