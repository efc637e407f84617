//! The durable function that `dispatcher` starts: it charges an order, waits for a day, and ships it.
//!
//! Each step is recorded, and a step that was recorded is not run again. A step whose process dies before that runs
//! again, so what it does outside must be idempotent by itself: it sends a key along that is the same in each attempt.
//! The execution's name is such a key, because the dispatcher made it from the order.
//!
//! The SDK is a preview of AWS. Its documentation says what to set in AWS: `DurableConfig` and two permissions.

use std::time::Duration;

use aws_durable_execution_sdk as durable;
use durable::{BoxError, DurableContext};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
}

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    lambda_runtime::tracing::init_default_subscriber();
    durable::run(fulfil).await
}

async fn fulfil(order: Order, context: DurableContext) -> Result<String, BoxError> {
    let key = format!("{}#charge", context.execution_arn());
    let payment = context.step(move |_| charge(key)).name("charge").await?;
    context.wait(Duration::from_secs(24 * 60 * 60)).name("cooling-off").await?;
    let shipped = format!("{} shipped, {payment}", order.order_id);
    Ok(context.step(move |_| async move { Ok(shipped) }).name("ship").await?)
}

/// Here the payment service would be called, which charges once for each key.
async fn charge(_key: String) -> Result<String, BoxError> {
    Ok("paid".to_owned())
}

#[cfg(test)]
mod tests {
    use durable::test_util::LocalRunner;

    use super::*;

    #[tokio::test]
    async fn an_order_is_charged_and_shipped_in_two_invocations() {
        let result = LocalRunner::new().run(fulfil, Order { order_id: "o-1".to_owned() }).await;
        assert_eq!(result.output().map(String::as_str), Some("o-1 shipped, paid"));
        assert_eq!(result.invocation_count(), 2);
    }
}
