//! The conformance suite against an embedded DynamoDB, once for each way of writing and for each form of the table.

use lambda_idempotency_dynamodb::SortKey;
use lambda_idempotency_testkit::store_conformance;

use crate::support::{Fixture, InCompany};

/// Each write in a batch with another, so that all writes are statements.
mod with_company {
    use super::*;

    async fn store() -> InCompany {
        InCompany(Fixture::start().await.store())
    }

    store_conformance!(store);
}

/// Every write as a single request, in a partition of its own for each record.
mod without_partiql {
    use lambda_idempotency_dynamodb::DynamoDbStore;

    use super::*;

    async fn store() -> DynamoDbStore {
        let fixture = Fixture::sorted().await;
        let builder = fixture.in_sorted(SortKey::derived("sk", "idempotency#"));
        builder.without_partiql().build().unwrap()
    }

    store_conformance!(store);
}

/// All writes as statements, in one partition, to a server that answers failed conditions without the item.
mod without_items {
    use super::*;

    async fn store() -> InCompany {
        let fixture = Fixture::sorted().await;
        fixture.wire.withhold_items();
        InCompany(fixture.in_sorted(SortKey::new("sk", "idempotency#orders")).build().unwrap())
    }

    store_conformance!(store);
}
