//! The conformance suite against an embedded DynamoDB, in each way of writing.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::{Owner, Record},
    store::{Guard, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_dynamodb::DynamoDbStore;
use lambda_idempotency_testkit::store_conformance;
use support::{Fixture, claimed};

async fn store() -> DynamoDbStore {
    Fixture::start().await.store()
}

store_conformance!(store);

/// Every write by itself.
mod without_partiql {
    use super::*;

    async fn store() -> DynamoDbStore {
        Fixture::start().await.builder().without_partiql().build().unwrap()
    }

    store_conformance!(store);
}

/// No write by itself: each has company, so that all of them are statements.
mod with_company {
    use super::*;

    struct InCompany(DynamoDbStore);

    impl Store for InCompany {
        fn write<'a>(
            &'a self,
            writes: &'a [Write],
            deadline: Timestamp,
        ) -> BoxFuture<'a, Vec<Verdict>> {
            Box::pin(async move {
                let mut writes = writes.to_vec();
                for _ in 0..2 {
                    let key = Key::from_text(format!("company#{}", Owner::random().unwrap()));
                    writes.push(Write { key, guard: Guard::Absent, record: Some(claimed(1)) });
                }
                let mut verdicts = self.0.write(&writes, deadline).await;
                for company in verdicts.split_off(writes.len() - 2) {
                    assert!(matches!(company, Verdict::Written), "{company:?}");
                }
                verdicts
            })
        }

        fn read<'a>(
            &'a self,
            keys: &'a [Key],
            deadline: Timestamp,
        ) -> BoxFuture<'a, Vec<Result<Option<Record>, StoreError>>> {
            self.0.read(keys, deadline)
        }
    }

    async fn store() -> InCompany {
        InCompany(Fixture::start().await.store())
    }

    store_conformance!(store);
}
