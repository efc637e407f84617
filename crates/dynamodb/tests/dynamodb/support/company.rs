//! Sends each write together with another one, so that all writes are statements.

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
    store::{Capabilities, Guard, Store, StoreError, Verdict, Write},
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
