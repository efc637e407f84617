//! A call of `run` without its context.

use lambda_idempotency::{Call, Failure, Idempotency, Operation, RunError};

async fn charge(idempotency: &Idempotency, operation: &Operation) -> Result<u32, RunError> {
    let run = idempotency.run(operation, "p-1", async |_: Call| Ok::<_, Failure>(42)).await?;
    Ok(run.result)
}
