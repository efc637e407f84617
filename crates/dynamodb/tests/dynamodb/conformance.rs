//! The conformance suite against an embedded DynamoDB, in each way of writing.

use lambda_idempotency_dynamodb::{DynamoDbStore, SortKey};
use lambda_idempotency_testkit::store_conformance;

use crate::support::{Fixture, InCompany};

async fn store() -> DynamoDbStore {
    Fixture::start().await.store()
}

store_conformance!(store);

/// Every write as a single request.
mod without_partiql {
    use super::*;

    async fn store() -> DynamoDbStore {
        Fixture::start().await.builder().without_partiql().build().unwrap()
    }

    store_conformance!(store);
}

/// Each write in a batch with another, so that all writes are statements.
mod with_company {
    use super::*;

    async fn store() -> InCompany {
        InCompany(Fixture::start().await.store())
    }

    store_conformance!(store);
}

/// All writes as statements, to a server that answers failed conditions without the item.
mod without_items {
    use super::*;

    async fn store() -> InCompany {
        let fixture = Fixture::start().await;
        fixture.wire.withhold_items();
        InCompany(fixture.store())
    }

    store_conformance!(store);
}

/// In one partition of a table with a sort key.
mod in_one_partition {
    use super::*;

    async fn store() -> DynamoDbStore {
        let fixture = Fixture::sorted().await;
        fixture.in_sorted(SortKey::new("sk", "idempotency#orders")).build().unwrap()
    }

    store_conformance!(store);
}

/// In a partition of its own for each record.
mod in_derived_partitions {
    use super::*;

    async fn store() -> DynamoDbStore {
        let fixture = Fixture::sorted().await;
        fixture.in_sorted(SortKey::derived("sk", "idempotency#")).build().unwrap()
    }

    store_conformance!(store);
}
