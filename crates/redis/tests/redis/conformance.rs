//! The conformance suites of the testkit. A cluster and a replica take a second to start, so all scenarios run with one
//! store.

use lambda_idempotency_redis::RedisStoreBuilder;
use lambda_idempotency_testkit::conformance::{SCENARIOS, browsing};

use crate::{cluster::Cluster, servers::Server};

async fn conforms(builder: impl Fn() -> RedisStoreBuilder) {
    let store = |prefix: &str| builder().prefix(prefix).build().unwrap();
    let all = store("all:");
    for scenario in SCENARIOS {
        println!("{}", scenario.name);
        (scenario.run)(&all).await;
    }
    browsing::each_record_is_on_one_page(&store("a:")).await;
    browsing::what_is_left_is_on_one_page(&store("b:")).await;
    browsing::a_mark_leaves_the_rest_of_its_record(&store("e:")).await;
    browsing::a_listing_shows_what_is_stored_now(&store("c:")).await;
    browsing::the_count_is_that_of_all_pages(&store("d:")).await;
}

#[tokio::test]
async fn every_scenario_passes() {
    let server = Server::redis(&[]);
    conforms(|| server.builder()).await;
}

/// In a cluster of three, in which the records of a call are with different servers.
#[tokio::test]
async fn every_scenario_passes_in_a_cluster() {
    let cluster = Cluster::of_three().await;
    conforms(|| cluster.primaries[0].builder()).await;
}
