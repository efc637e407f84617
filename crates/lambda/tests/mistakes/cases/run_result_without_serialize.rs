//! A result of `run` that cannot be stored.

use lambda_idempotency::{Call, Failure, Idempotency, Operation, RunContext, RunError};

struct Receipt;

async fn charge(idempotency: &Idempotency, operation: &Operation) -> Result<Receipt, RunError> {
    let context = RunContext::without_deadline();
    let run = idempotency.run(operation, "p-1", &context, async |_: Call| Ok::<_, Failure>(Receipt)).await?;
    Ok(run.result)
}
