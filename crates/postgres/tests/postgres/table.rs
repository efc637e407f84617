//! A new table of a server, and writes of it.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    record::Owner,
    store::{Store, StoreErrorKind, Write},
};
use lambda_idempotency_postgres::{PostgresStore, PostgresStoreBuilder};
use tokio::sync::watch;
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::writes::{error_of, in_secs, one};

/// The machine's clock, some time ahead. Setting it ends the timers that are over then.
#[derive(Clone, Default)]
pub(crate) struct Ahead(watch::Sender<Duration>);

impl Ahead {
    pub(crate) fn set(&self, ahead: Duration) {
        self.0.send_replace(ahead);
    }
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(*self.0.borrow())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut ahead = self.0.subscribe();
        let before = *ahead.borrow();
        Box::pin(async move {
            let is_over = ahead.wait_for(|ahead| *ahead >= before + duration);
            select(pin!(SystemClock.sleep(duration)), pin!(is_over)).await;
        })
    }
}

/// Far longer than anything takes that ends.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A builder of a store in a new table. Its requests have time on a slow machine, too.
pub(crate) async fn new_table(url: &str) -> PostgresStoreBuilder {
    let name = format!("t{}", Owner::random().unwrap());
    let builder = PostgresStore::builder(url).table(name).attempt_timeout(Duration::from_secs(20));
    builder.clone().build().unwrap().migrate(in_secs(30)).await.unwrap();
    builder
}

/// A store in a new table.
pub(crate) async fn new_store(url: &str) -> Arc<PostgresStore> {
    Arc::new(new_table(url).await.build().unwrap())
}

/// The name of the table.
pub(crate) fn name_of(table: &PostgresStoreBuilder) -> String {
    format!("{table:?}").split('"').nth(1).unwrap().to_owned()
}

/// Runs statements as the owner of the database, on a connection of their own. The number that they return.
pub(crate) async fn ask(url: &str, text: &str) -> Option<i64> {
    let (client, wire) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let Either::Left((answer, _)) = select(pin!(client.simple_query(text)), pin!(wire)).await
    else {
        panic!("the connection was closed")
    };
    answer.unwrap().iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    })
}

/// Makes a call while another transaction holds what this statement takes.
pub(crate) async fn while_held<T>(url: &str, hold: &str, call: impl Future<Output = T>) -> T {
    let (other, wire) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let calling = async {
        other.batch_execute(&format!("BEGIN; {hold}")).await.unwrap();
        let answer = call.await;
        other.batch_execute("ROLLBACK").await.unwrap();
        answer
    };
    match select(pin!(calling), pin!(wire)).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => panic!("the connection was closed"),
    }
}

/// Fails unless a write is told that another transaction holds its row. The last request of a call may have too little time
/// for an answer, and then nobody knows: another call is made.
pub(crate) async fn is_contended(store: &impl Store, write: impl Fn() -> Write) {
    let mut told = None;
    for seconds in [1, 3, 3, 3, 3, 3] {
        let error = error_of(one(store, write(), in_secs(seconds)).await);
        told = Some((error.kind(), error.may_have_applied()));
        if error.kind() == StoreErrorKind::Contended {
            break;
        }
    }
    assert_eq!(told, Some((StoreErrorKind::Contended, false)));
}

/// When a trigger runs: `BEFORE INSERT` for example, or this.
pub(crate) const AT_COMMIT: &str = "at the commit of an insertion";

/// Runs this for each row in a trigger of a table. Returns a sequence, which is `{tries}` there.
pub(crate) async fn trigger(url: &str, table: &str, when: &str, body: &str) -> String {
    let name = format!("t{}", Owner::random().unwrap());
    let (kind, on) = match when {
        AT_COMMIT => {
            ("CONSTRAINT TRIGGER", format!("AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED"))
        }
        when => ("TRIGGER", format!("{when} ON {table}")),
    };
    let body = body.replace("{tries}", &format!("{name}_tries"));
    let text = format!(
        "CREATE SEQUENCE {name}_tries; \
         CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NEW; END $$; \
         CREATE {kind} {name} {on} FOR EACH ROW EXECUTE FUNCTION {name}()"
    );
    ask(url, &text).await;
    format!("{name}_tries")
}

/// How often a trigger has counted.
pub(crate) async fn tries(url: &str, sequence: &str) -> Option<i64> {
    ask(url, &format!("SELECT last_value FROM {sequence}")).await
}
