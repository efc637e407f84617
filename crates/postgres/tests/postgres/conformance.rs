//! The conformance suite, with the server itself and through PgBouncer.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use futures_util::{FutureExt, StreamExt, stream};
use lambda_idempotency_core::store::Store;
use lambda_idempotency_postgres::PostgresStore;
use lambda_idempotency_testkit::conformance::{SCENARIOS, browsing};

use crate::{servers::Server, table::new_store};

/// How many scenarios run at once.
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn postgresql_conforms() {
    let server = Server::shared_postgres();
    conforms(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn postgresql_conforms_through_pgbouncer_in_transaction_mode() {
    let server = Server::shared_postgres();
    let pooler = Server::pgbouncer(server, "", "");
    conforms(&pooler.url()).await;
}

/// A database may have another default, in which a statement does not see what others have committed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn postgresql_conforms_with_other_defaults() {
    let server = Server::postgres(&[
        "fsync=off",
        "default_transaction_isolation=serializable",
        "enable_indexscan=off",
    ]);
    conforms(&server.url()).await;
}

async fn conforms(url: &str) {
    conforms_in(new_store(url).await).await;
    browsing::each_record_is_on_one_page(&*new_store(url).await).await;
    browsing::what_is_left_is_on_one_page(&*new_store(url).await).await;
    browsing::what_is_forgotten_leaves_the_rest_of_its_record(&*new_store(url).await).await;
    browsing::a_listing_shows_what_is_stored_now(&*new_store(url).await).await;
    browsing::the_count_is_that_of_all_pages(&*new_store(url).await).await;
}

async fn conforms_in(store: Arc<PostgresStore>) {
    let mut failed = Vec::new();
    {
        let store: &dyn Store = &*store;
        let mut running = stream::iter(SCENARIOS)
            .map(|scenario| async move {
                let ended = AssertUnwindSafe((scenario.run)(store)).catch_unwind().await;
                ended.err().map(|panic| format!("{}: {}", scenario.name, text(&*panic)))
            })
            .buffer_unordered(AT_ONCE);
        while let Some(ended) = running.next().await {
            failed.extend(ended);
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), SCENARIOS.len(), failed.join("\n\n"));
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
