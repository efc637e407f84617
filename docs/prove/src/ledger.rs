//! The ledger: a table with an item for each start of a handler and for each effect.
//!
//! Nothing in it is ever changed: an effect that happens twice is two items.

use std::{
    collections::HashMap,
    mem, process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, types::AttributeValue};
use lambda_idempotency::{
    Call,
    clock::{Clock as _, SystemClock},
};
use lambda_runtime::Error;

use crate::{burst, order::Order};

type Item = HashMap<String, AttributeValue>;

/// The ledger. Clones are of one process.
#[derive(Clone)]
pub(crate) struct Ledger {
    client: Client,
    table: String,
    /// The table of idempotency records, which is throttled if an order says so.
    records: String,
    /// The log stream, which is the sandbox's, and what tells its processes apart.
    stream: String,
    process: String,
    lines: Arc<AtomicU64>,
    later: Arc<Mutex<Vec<Item>>>,
}

impl Ledger {
    pub(crate) async fn from_env() -> Result<Self, Error> {
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        Ok(Self {
            client: Client::new(&config),
            table: std::env::var("PROVE_LEDGER")?,
            records: std::env::var("IDEMPOTENCY_TABLE")?,
            // Without it, lines of two sandboxes could have one key, and an effect would be missed.
            stream: std::env::var("AWS_LAMBDA_LOG_STREAM_NAME")?,
            process: format!("{}-{}", now(), process::id()),
            lines: Arc::default(),
            later: Arc::default(),
        })
    }

    /// Writes that an attempt started or had its effect.
    pub(crate) async fn write(
        &self,
        step: &str,
        order: &Order,
        call: &Call,
    ) -> Result<(), aws_sdk_dynamodb::Error> {
        let later = mem::take(&mut *self.later.lock().unwrap_or_else(PoisonError::into_inner));
        for item in later {
            self.put(self.at(call, item)).await?;
        }
        self.put(self.at(call, Self::item(step, order, call))).await
    }

    /// Writes an effect with the next line.
    pub(crate) fn write_later(&self, order: &Order, call: &Call) {
        let item = Self::item("effect", order, call);
        self.later.lock().unwrap_or_else(PoisonError::into_inner).push(item);
    }

    /// Uses up the write capacity of the table of idempotency records.
    pub(crate) async fn throttle(&self) {
        burst::use_up(&self.client, &self.records).await;
    }

    async fn put(&self, item: Item) -> Result<(), aws_sdk_dynamodb::Error> {
        // The SDK may send it again, and it is one item then: it has its key already.
        self.client.put_item().table_name(&self.table).set_item(Some(item)).send().await?;
        Ok(())
    }

    fn item(step: &str, order: &Order, call: &Call) -> Item {
        let text = |value: &str| AttributeValue::S(value.to_owned());
        [
            ("run", text(&order.run)),
            ("step", text(step)),
            ("order", AttributeValue::N(order.order.to_string())),
            ("message", text(&call.record().id)),
            ("fence", AttributeValue::N(call.fence().to_string())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// The item with its time, its invocation, and a sort key that no other has.
    fn at(&self, call: &Call, mut item: Item) -> Item {
        let number = self.lines.fetch_add(1, Ordering::Relaxed);
        let line = format!("{} {} {number}", self.stream, self.process);
        item.insert("line".to_owned(), AttributeValue::S(line));
        item.insert("stream".to_owned(), AttributeValue::S(self.stream.clone()));
        let request = call.request_id().unwrap_or_default().to_owned();
        item.insert("request".to_owned(), AttributeValue::S(request));
        item.insert("at".to_owned(), AttributeValue::N(now()));
        item.insert("number".to_owned(), AttributeValue::N(number.to_string()));
        item
    }
}

/// Milliseconds since 1970.
fn now() -> String {
    SystemClock.now().as_millis().to_string()
}
