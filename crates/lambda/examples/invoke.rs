//! A function whose caller needs the result: a payment is charged once, and a repeated invocation
//! with its id gets the first receipt.
//!
//! For callers that invoke directly and retry, such as Step Functions or an SDK.
//!
//! **In AWS**: create the table, and set its name in `IDEMPOTENCY_TABLE`; set the caller's timeout
//! to at least the function's.
//!
//! **Here**: both answers are the same receipt.
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke crates/lambda/examples/invoke.json \
//!     --example invoke --repeat 2 --json
//! ```

use lambda_idempotency::{
    Call, DynamoDbStore, Failure, Idempotency, Operation,
    clock::{Clock as _, SystemClock},
    source::Invoke,
};
use lambda_runtime::{Error, tracing};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Payment {
    amount: u64,
}

/// It has to implement `Serialize`, because later callers get it from the store.
#[derive(Serialize)]
struct Receipt {
    charged: u64,
    number: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    // The same id with another amount is a mistake of the caller, and is refused.
    let charge_once = Operation::new("charge").key("paymentId").fingerprint("amount");
    idempotency.on(Invoke::new(), &charge_once, charge)?.serve().await
}

async fn charge(payment: Payment, _: Call) -> Result<Receipt, Failure> {
    let amount = payment.amount;
    if amount == 0 {
        // Permanent: later calls with this id fail, too. After any other error, the next call tries
        // again.
        return Err(Failure::permanent("there is nothing to charge"));
    }
    Ok(Receipt { charged: amount, number: format!("r-{}", SystemClock.now().as_millis()) })
}
