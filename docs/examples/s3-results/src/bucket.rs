//! An S3 bucket as a place for results.

use aws_config::BehaviorVersion;
use aws_sdk_s3::{Client, operation::get_object::GetObjectError, primitives::ByteStream};
use lambda_idempotency_results::{BoxError, BoxFuture, ResultName, ResultStore, Timestamp};

/// Keeps results in a bucket.
///
/// The function needs `s3:PutObject` and `s3:GetObject` on `arn:aws:s3:::BUCKET/results/*`, and `s3:ListBucket` on the
/// bucket: without it, S3 answers 403 for an object that is not there, and it is not certain that the result is gone.
///
/// Give the bucket a lifecycle rule that deletes objects below `results/`, later than the retention of the operations.
/// Objects to which no record refers are deleted by it too.
pub struct Bucket {
    s3: Client,
    name: String,
}

impl Bucket {
    /// The bucket that `RESULT_BUCKET` names.
    pub async fn from_env() -> Result<Self, BoxError> {
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        // Servers on this machine have no host name for each bucket.
        let is_local = std::env::var_os("AWS_ENDPOINT_URL_S3").is_some();
        let config = aws_sdk_s3::config::Builder::from(&config).force_path_style(is_local).build();
        Ok(Self { s3: Client::from_conf(config), name: std::env::var("RESULT_BUCKET")? })
    }
}

impl ResultStore for Bucket {
    /// The lifecycle rule counts days, and is not told of the expiry.
    fn put<'a>(
        &'a self,
        name: &'a ResultName,
        content: Vec<u8>,
        _expires_at: Timestamp,
        _call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            self.s3
                .put_object()
                .bucket(&self.name)
                .key(format!("results/{name}"))
                .body(ByteStream::from(content))
                .send()
                .await?;
            Ok(())
        })
    }

    fn get<'a>(
        &'a self,
        name: &'a ResultName,
        _call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>> {
        Box::pin(async move {
            let request = self.s3.get_object().bucket(&self.name).key(format!("results/{name}"));
            match request.send().await {
                Ok(object) => Ok(Some(object.body.collect().await?.to_vec())),
                Err(error)
                    if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) =>
                {
                    Ok(None)
                }
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// Needs an S3 server, which `AWS_ENDPOINT_URL_S3` names: see the first lines of `main.rs`.
#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use lambda_idempotency::{
        Idempotency, MemoryStore, Operation, Run, RunContext, RunError, error::ResultLost,
        store::Cache,
    };
    use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};

    use super::*;

    async fn report(records: &Arc<MemoryStore>, bucket: Bucket) -> Result<Run<Vec<u64>>, RunError> {
        let keys = LocalKeys::new(EncryptionKey::new("test", &[7; 32]).expect("32 bytes"));
        let store =
            Results::new(Arc::clone(records)).encrypt_with(keys).offload_above(4096, bucket);
        Idempotency::new(store)
            .with_cache(Cache::off())
            .run(
                &Operation::new("report").key("month"),
                &serde_json::json!({"month": "2026-11"}),
                &RunContext::without_deadline(),
                async |_| Ok::<_, Infallible>((0..100_000).collect()),
            )
            .await
    }

    #[tokio::test]
    #[ignore = "needs an S3 server"]
    async fn a_result_of_half_a_megabyte_is_kept_and_answered() {
        let bucket = Bucket::from_env().await.expect("RESULT_BUCKET");
        // It may exist already.
        let _ = bucket.s3.create_bucket().bucket(&bucket.name).send().await;
        let (records, expected) =
            (Arc::new(MemoryStore::new()), (0..100_000).collect::<Vec<u64>>());
        let first = report(&records, bucket).await.expect("a report");
        assert!(!first.replayed && first.recorded && first.result == expected);

        let bucket = Bucket::from_env().await.expect("RESULT_BUCKET");
        let objects =
            bucket.s3.list_objects_v2().bucket(&bucket.name).prefix("results/").send().await;
        let objects = objects.expect("a list").contents.unwrap_or_default();
        let [object] = &objects[..] else { panic!("{} objects", objects.len()) };
        println!("{} has {:?} bytes", object.key().unwrap_or_default(), object.size());
        let key = object.key().unwrap_or_default().to_owned();
        let again = report(&records, bucket).await.expect("a report");
        assert!(again.replayed && again.result == expected);

        let bucket = Bucket::from_env().await.expect("RESULT_BUCKET");
        bucket.s3.delete_object().bucket(&bucket.name).key(key).send().await.expect("a deletion");
        match report(&records, bucket).await {
            Err(RunError::ResultLost(ResultLost::NotKept)) => {}
            other => panic!("{other:?}"),
        }
    }
}
