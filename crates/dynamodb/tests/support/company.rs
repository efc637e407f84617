//! Sends each write together with another one, so that all writes are statements.

use futures_util::future::join4;
use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_dynamodb::DynamoDbStore;

pub(crate) struct InCompany(pub(crate) DynamoDbStore);

impl Store for InCompany {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let mut writes = writes.to_vec();
            for _ in 0..2 {
                let key = Key::from_text(format!("company#{}", Owner::random().unwrap()));
                let hour = std::time::Duration::from_secs(3600);
                let record =
                    IdempotencyRecord::new(Status::Completed, SystemClock.now().plus(hour));
                writes.push(Write::new(key, Guard::Absent, Some(record)));
            }
            let mut verdicts = self.0.write(&writes, call_deadline).await;
            for company in verdicts.split_off(writes.len() - 2) {
                assert!(!matches!(company, Verdict::Found(_)), "{company:?}");
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.0.read(keys, call_deadline)
    }
}

/// Makes each call while others are on their way, so that its writes share requests with theirs.
#[allow(dead_code, reason = "not in every test program")]
pub(crate) struct InCrowd(pub(crate) DynamoDbStore);

#[allow(dead_code, reason = "not in every test program")]
impl InCrowd {
    async fn other(&self, call_deadline: Timestamp) {
        let key = Key::from_text(format!("crowd#{}", Owner::random().unwrap()));
        let hour = std::time::Duration::from_secs(3600);
        let record = IdempotencyRecord::new(Status::InProgress, SystemClock.now().plus(hour));
        let write = [Write::new(key, Guard::Absent, Some(record))];
        let verdict = self.0.write(&write, call_deadline).await.remove(0);
        assert!(!matches!(verdict, Verdict::Found(_)), "{verdict:?}");
    }
}

impl Store for InCrowd {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let others = || self.other(call_deadline);
            let ((), verdicts, (), ()) =
                join4(others(), self.0.write(writes, call_deadline), others(), others()).await;
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.0.read(keys, call_deadline)
    }
}
