//! The conformance suite, with the server itself and through PgBouncer.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use lambda_idempotency_core::{
    record::{IdempotencyRecord, Owner, Provenance},
    store::{Guard, RecordVersion, Store, Write},
};
use lambda_idempotency_testkit::conformance::{SCENARIOS, browsing};

use crate::{
    servers::Server,
    table::{ask, name_of, new_store, new_table},
    writes::{claimed, completed, in_secs, key, stored, written},
};

/// How many scenarios run at once.
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_conforms() {
    let server = Server::shared_postgres();
    conforms(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_conforms_through_pgbouncer_in_transaction_mode() {
    let server = Server::shared_postgres();
    let pooler = Server::pgbouncer(server, "", "");
    conforms(&pooler.url()).await;
}

/// A database may have another default, in which a statement does not see what others have committed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_conforms_with_other_defaults() {
    let server = Server::postgres(&[
        "fsync=off",
        "default_transaction_isolation=serializable",
        "enable_indexscan=off",
    ]);
    conforms(&server.url()).await;
}

async fn conforms(url: &str) {
    let store = &*new_store(url).await;
    stream::iter(SCENARIOS).for_each_concurrent(AT_ONCE, |scenario| (scenario.run)(store)).await;
    browsing::each_record_is_on_one_page(&*new_store(url).await).await;
    browsing::what_is_left_is_on_one_page(&*new_store(url).await).await;
    browsing::a_mark_leaves_the_rest_of_its_record(&*new_store(url).await).await;
    browsing::a_listing_shows_what_is_stored_now(&*new_store(url).await).await;
    browsing::the_count_is_that_of_all_pages(&*new_store(url).await).await;
}

/// In a column of its own, and in the provenance. A takeover has a provenance of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_leaves_what_another_version_has_stored() {
    const MORE: &str = r#"{"claimed_at": 1700000000000,  "region": "eu"}"#;
    let url = Server::shared_postgres().url();
    for count in [1, 3] {
        let table = new_table(&url).await;
        let name = name_of(&table);
        ask(&url, &format!("ALTER TABLE {name} ADD COLUMN colour text DEFAULT 'red'")).await;
        let store = table.build().unwrap();
        let write = async |make: &dyn Fn() -> (Guard, IdempotencyRecord)| {
            let writes = (0..count).map(|n| {
                let (guard, record) = make();
                Write::new(key(n.to_string()), guard, Some(record))
            });
            let verdicts = store.write(&writes.collect::<Vec<_>>(), in_secs(60)).await;
            verdicts.iter().for_each(written);
        };
        let stays = async |what: &str| {
            let same = format!(
                "SELECT count(*) FROM {name} WHERE provenance::text = '{MORE}' AND colour = 'blue'"
            );
            assert_eq!(ask(&url, &same).await, Some(count), "{what} of {count}");
        };
        let mut held = claimed(1);
        held.provenance = Provenance::from_json(MORE);
        write(&|| (Guard::Absent, held.clone())).await;
        ask(&url, &format!("UPDATE {name} SET provenance = '{MORE}', colour = 'blue'")).await;
        let mut renewed = held.clone();
        renewed.lease_until = Some(in_secs(90));
        renewed.steps = Some("[1]".into());
        write(&|| (Guard::Unchanged(RecordVersion::of(&held)), renewed.clone())).await;
        stays("a renewal").await;
        let mut released = renewed.clone();
        released.last_owner = released.owner.take();
        write(&|| (Guard::OwnedBy(Owner::from_bits(1)), released.clone())).await;
        stays("a release").await;
        let mut takeover = claimed(2);
        takeover.provenance = Some(Provenance::new(in_secs(0), Arc::default()));
        write(&|| (Guard::Unchanged(RecordVersion::of(&released)), takeover.clone())).await;
        assert_eq!(stored(&store, "0").await.unwrap().provenance, takeover.provenance);
        ask(&url, &format!("UPDATE {name} SET provenance = '{MORE}'")).await;
        let mut done = completed(2);
        done.provenance.clone_from(&takeover.provenance);
        write(&|| (Guard::OwnedBy(Owner::from_bits(2)), done.clone())).await;
        stays("a completion").await;
        // In optimistic mode, over one that has expired: it is another worker's.
        let mut next = completed(3);
        next.provenance.clone_from(&takeover.provenance);
        write(&|| (Guard::Unchanged(RecordVersion::of(&done)), next.clone())).await;
        assert_eq!(stored(&store, "0").await.unwrap().provenance, takeover.provenance);
    }
}
