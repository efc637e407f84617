//! A local Lambda with a function, and helpers that read its results.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lambda_idempotency_local::{
    DeliveryReport, Fault, FunctionConfig, Gate, InvocationResult, Local, LocalBuilder,
    RecordReport, SqsConfig,
};
use lambda_idempotency_tests::{
    CLAIMS, ORDERS,
    events::{batch_of, order},
    function, tables,
};
use serde_json::Value;

/// The orders function of `crates/orders`, as it is deployed: the binary that cargo built with these
/// tests, or another that `ORDERS_UNDER_TEST` names, such as the one of `bash tests/run deployed`.
pub(crate) fn orders() -> FunctionConfig {
    match std::env::var_os("ORDERS_UNDER_TEST") {
        Some(binary) => function(binary),
        None => function(env!("CARGO_BIN_EXE_orders-under-test")),
    }
}

/// The function of `src/bin/scripted_orders.rs`, for orders that ask for faults; or another build of it
/// that `SCRIPTED_ORDERS_UNDER_TEST` names.
pub(crate) fn scripted_orders() -> FunctionConfig {
    match std::env::var_os("SCRIPTED_ORDERS_UNDER_TEST") {
        Some(binary) => function(binary),
        None => function(env!("CARGO_BIN_EXE_scripted_orders")),
    }
}

/// The orders function with this key expression for all of its sources, whose keys need the same form.
pub(crate) fn orders_by(key: &str) -> FunctionConfig {
    ["SQS", "SNS", "EVENTBRIDGE", "KINESIS"]
        .iter()
        .fold(orders(), |function, source| function.env(format!("ORDERS_{source}_KEY"), key))
}

/// The function of `src/bin/idle.rs`.
pub(crate) fn idle() -> FunctionConfig {
    function(env!("CARGO_BIN_EXE_idle"))
}

/// The timeout of functions whose leases end in a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);
/// That timeout, a second of lease grace, a second of clock skew, and a reserve.
pub(crate) const AFTER_THE_LEASE: Duration = Duration::from_millis(6500);

/// A queue with a short visibility timeout, so that tests do not wait for returned messages.
pub(crate) fn quick_queue() -> SqsConfig {
    SqsConfig { visibility: Some(Duration::from_millis(20)), ..SqsConfig::default() }
}

/// A local Lambda, its database, and the log lines of the function except its record lines.
pub(crate) struct World {
    local: Local,
    lines: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// The orders function, with a quick queue and quick retries.
    pub(crate) async fn new() -> Self {
        Self::of(orders()).await
    }

    pub(crate) async fn of(function: FunctionConfig) -> Self {
        Self::with(function, |local| local).await
    }

    /// A world of this function, changed by `change`.
    pub(crate) async fn with(
        function: FunctionConfig,
        change: impl FnOnce(LocalBuilder) -> LocalBuilder,
    ) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let written = Arc::clone(&lines);
        let mut builder = Local::builder(function)
            .sqs(quick_queue())
            .retry_delays(vec![Duration::from_millis(10); 2])
            .on_output(move |line| {
                if !line.is_record {
                    written.lock().unwrap().push(line.text);
                }
            });
        for table in tables() {
            builder = builder.table(table);
        }
        Self { local: change(builder).start().await.unwrap(), lines }
    }

    /// A world in which a returned record is delivered again after the lease of its first delivery ended.
    pub(crate) async fn outlasting_leases(function: FunctionConfig) -> Self {
        let queue = SqsConfig { visibility: Some(AFTER_THE_LEASE), ..SqsConfig::default() };
        Self::with(function.timeout(TIMEOUT), |local| local.sqs(queue)).await.warmed().await
    }

    /// Delivers an order, and kills its process by `SIGKILL` when this fault holds a request.
    pub(crate) async fn kill(&self, hold: impl FnOnce(&Gate) -> Fault) -> DeliveryReport {
        self.kill_with(&batch_of([order("o-1")]), hold).await
    }

    /// The same with this event.
    pub(crate) async fn kill_with(
        &self,
        event: &Value,
        hold: impl FnOnce(&Gate) -> Fault,
    ) -> DeliveryReport {
        let gate = Gate::new(); // never opened: a request that is held before it is applied is never applied
        self.dynamodb().faults().add(hold(&gate).times(1));
        let killer = async {
            gate.reached().await;
            assert_eq!(self.kill_in_flight(), 1);
        };
        tokio::join!(self.send(event), killer).0
    }

    /// Starts the first process now. The visibility timeout of a message begins before a process is started for it, and its
    /// lease after that: only so the lease has ended by the next delivery, however long the start takes.
    pub(crate) async fn warmed(self) -> Self {
        self.warm().await.unwrap();
        self
    }

    /// Delivers an event until each of its records is acknowledged or dead-lettered.
    pub(crate) async fn send(&self, event: &Value) -> DeliveryReport {
        self.local.deliver(&event.to_string()).await.unwrap()
    }

    /// How often each order was placed.
    pub(crate) fn placed(&self) -> BTreeMap<String, u64> {
        let row = |item: &Value| {
            let id = item["orderId"]["S"].as_str().unwrap().to_owned();
            (id, item["placed"]["N"].as_str().unwrap().parse().unwrap())
        };
        self.dynamodb().items(ORDERS).unwrap().iter().map(row).collect()
    }

    /// Fails unless these orders were placed, once each, and no others.
    #[track_caller]
    pub(crate) fn assert_placed_once<'a>(&self, orders: impl IntoIterator<Item = &'a str>) {
        let once = orders.into_iter().map(|order| (order.to_owned(), 1)).collect();
        assert_eq!(self.placed(), once);
    }

    /// The idempotency records.
    pub(crate) fn claims(&self) -> Vec<Value> {
        self.dynamodb().items(CLAIMS).unwrap()
    }

    /// The lines that the function wrote to its log and to its standard error.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl Deref for World {
    type Target = Local;

    fn deref(&self) -> &Local {
        &self.local
    }
}

/// For each delivery of each record: the id, the receive count, and the outcome.
pub(crate) fn history(report: &DeliveryReport) -> Vec<(&str, u32, &str)> {
    fn row(record: &RecordReport) -> (&str, u32, &str) {
        let id = record.record.as_deref().unwrap_or("-");
        (id, record.receive_count, record.outcome.as_str())
    }
    report.records().map(row).collect()
}

/// The outcome of each delivery of each record.
pub(crate) fn outcomes(report: &DeliveryReport) -> Vec<&str> {
    report.records().map(|record| record.outcome.as_str()).collect()
}

/// The ids in a partial batch response.
pub(crate) fn returned(result: &InvocationResult) -> Vec<&str> {
    let InvocationResult::Response(response) = result else { panic!("{result}") };
    let failures = response["batchItemFailures"].as_array().unwrap();
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap()).collect()
}

/// Type and text of a function error.
#[track_caller]
pub(crate) fn error(result: &InvocationResult) -> (&str, &str) {
    let InvocationResult::FunctionError { kind, message } = result else { panic!("{result}") };
    (kind, message)
}
