//! Keeps results that are too large for an idempotency record in an S3 bucket, compressed and encrypted.
//!
//! The function makes a report, whose lines may have megabytes, once for each month. A later call gets the same report:
//! from DynamoDB, or from S3 if it is large.
//!
//! **In AWS**: create the table and the bucket, and set their names in `IDEMPOTENCY_TABLE` and `RESULT_BUCKET`
//! ([`bucket::Bucket`] has the permissions and the lifecycle rule). `RESULT_KEY` has 64 hexadecimal digits, the
//! encryption key; better, fetch it from a secret store when the function starts.
//!
//! **Here**: the test puts a result into any S3 server, and reads it:
//!
//! ```console
//! $ pip install 'moto[server]' && moto_server --port 5555 &
//! $ AWS_ENDPOINT_URL_S3=http://127.0.0.1:5555 AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test \
//!     AWS_SECRET_ACCESS_KEY=test RESULT_BUCKET=results \
//!     cargo test --manifest-path docs/examples/Cargo.toml --bin s3-results -- --ignored --nocapture
//! ```

mod bucket;

use bucket::Bucket;
use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, RunError};
use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
struct Month {
    month: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let keys =
        LocalKeys::new(EncryptionKey::new("2026-11", &bytes(&std::env::var("RESULT_KEY")?)?)?);
    let store = Results::new(DynamoDbStore::from_env().await?)
        .compress_above(1024)
        .encrypt_with(keys)
        .offload_above(100 * 1024, Bucket::from_env().await?);
    let idempotency = &Idempotency::new(store);
    let report = &Operation::new("report").key("month");
    report.check()?; // finds a mistake in the expression now, and not at the first event
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Month>| {
        let run = idempotency.run(report, &event.payload, &event.context, write_report).await?;
        Ok::<_, RunError>(run.result)
    }))
    .await
}

async fn write_report(_: Call) -> Result<Vec<String>, Failure> {
    Ok((0..100_000).map(|line| format!("line {line}")).collect())
}

/// The bytes that hexadecimal digits say.
fn bytes(digits: &str) -> Result<Vec<u8>, Error> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}
