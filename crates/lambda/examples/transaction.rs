//! Effects that happen exactly once: a deposit is added to an account in the same DynamoDB transaction that
//! records it as done, so no death, retry or duplicate can add it twice or lose it.
//!
//! With `OPTIMISTIC=1` keys are not claimed: one round trip for each deposit in place of two.
//!
//! **In AWS**: create both tables, set their names in `IDEMPOTENCY_TABLE` and `ACCOUNTS_TABLE`, and allow
//! `dynamodb:UpdateItem` on the accounts.
//!
//! **Here**: the event is delivered twice; the account gets the deposit once.
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke crates/lambda/examples/transaction.json \
//!     --example transaction --table idempotency:id:expiration --table accounts:id --repeat 2
//! ```

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use lambda_idempotency::{
    Call, CallExt as _, DynamoDbStore, Failure, Idempotency, Mode, Operation, source::Sqs,
};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
struct Deposit {
    account: String,
    cents: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let deposits = Operation::new("deposit").key("depositId");
    let is_optimistic = std::env::var("OPTIMISTIC").is_ok_and(|value| value == "1");
    let deposits = if is_optimistic {
        deposits.mode(Mode::Optimistic)
    } else {
        deposits.mode(Mode::Transactional)
    };
    lambda_runtime::run(idempotency.on(Sqs::new(), &deposits, deposit)?).await
}

/// Collects the effect and sends nothing: the library commits it together with the completion.
async fn deposit(deposit: Deposit, call: Call) -> Result<(), Failure> {
    let table = std::env::var("ACCOUNTS_TABLE").unwrap_or_else(|_| "accounts".to_owned());
    let add = Update::builder()
        .table_name(table)
        .key("id", AttributeValue::S(deposit.account))
        .update_expression("ADD cents :cents")
        .expression_attribute_values(":cents", AttributeValue::N(deposit.cents.to_string()))
        .build()?;
    call.transact(TransactWriteItem::builder().update(add).build())?;
    Ok(())
}
