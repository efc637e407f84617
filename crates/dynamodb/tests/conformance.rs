//! The conformance suite against an embedded DynamoDB, in each way of writing.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use lambda_idempotency_dynamodb::DynamoDbStore;
use lambda_idempotency_testkit::store_conformance;
use support::{Fixture, InCompany};

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

    async fn store() -> InCompany {
        InCompany(Fixture::start().await.store())
    }

    store_conformance!(store);
}

/// As statements, to a server that answers failed conditions without the item.
mod without_items {
    use super::*;

    async fn store() -> InCompany {
        let fixture = Fixture::start().await;
        fixture.wire.withhold_items();
        InCompany(fixture.store())
    }

    store_conformance!(store);
}
