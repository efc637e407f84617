//! Steps: a payment that is made once although its handler is called three times. Each attempt is disturbed by a
//! fault that the example injects, and prints what it did; the last lines are what happened outside.
//!
//! The step's key covers the one moment that the library cannot: the payment was made, and nothing is known of it.
//!
//! ```console
//! $ cargo run -p lambda-idempotency --example steps
//! ```

use std::{collections::BTreeMap, error::Error, sync::Arc};

use lambda_idempotency::{
    Call, Failure, Idempotency, MemoryStore, Operation, source::Sqs, testing,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// What happened outside: payments by their idempotency keys, as payment services keep them, and parcels.
#[derive(Default)]
struct Outside {
    requests: usize,
    payments: BTreeMap<String, u64>,
    parcels: usize,
}

/// A payment service. Its first answer is lost, after it has made the payment.
async fn pay(outside: &Mutex<Outside>, key: String, cents: u64) -> Result<String, Failure> {
    let mut outside = outside.lock().await;
    outside.requests += 1;
    let id = format!("payment-{}", key.get(..8).unwrap_or_default());
    let is_new = outside.payments.insert(key, cents).is_none();
    println!("  pay: {id}, {}", if is_new { "made" } else { "known by its key" });
    if outside.requests == 1 { Err(Failure::transient("the answer is lost")) } else { Ok(id) }
}

async fn place(order: Value, call: Call, outside: Arc<Mutex<Outside>>) -> Result<(), Failure> {
    println!("attempt {}", call.failed_attempts() + 1);
    let cents = order.get("cents").and_then(Value::as_u64).unwrap_or_default();
    let payment = call.step("pay", |key| pay(&outside, key, cents)).await?;
    println!("  paid: {payment}");
    if call.failed_attempts() == 1 {
        return Err(Failure::transient("the carrier does not answer"));
    }
    outside.lock().await.parcels += 1;
    println!("  shipped");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let outside = Arc::<Mutex<Outside>>::default();
    let shared = Arc::clone(&outside);
    let handler = move |order, call| place(order, call, Arc::clone(&shared));
    let orders = Operation::new("place-order").key("orderId");
    let function = Idempotency::new(MemoryStore::new()).on(Sqs::new(), &orders, handler)?;
    let body = json!({ "orderId": "o-1", "cents": 4_200 }).to_string();
    let message = json!({ "messageId": "m-1", "eventSource": "aws:sqs", "body": body,
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders" });
    for _ in 0..4 {
        testing::invoke(&function, &json!({ "Records": [message] })).await?;
    }
    let Outside { requests, payments, parcels } = &*outside.lock().await;
    println!("{requests} requests, {} payment, {parcels} parcel", payments.len());
    assert_eq!((*requests, payments.len(), *parcels), (2, 1, 1));
    Ok(())
}
