//! [`Local`]: the function, its database and its sources, together.

use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use crate::function::{OnOutput, Pool, new_id};
use crate::source::{Event, Kafka, Poller, Queue, Shards, is_final, record_ids, report};
use crate::{
    AsyncConfig, AtOnce, DeadLetter, DeliveryReport, DynamoDb, Error, Fate, FunctionConfig,
    HttpConfig, InFlight, Invocation, InvocationReport, OutputLine, Signal, Source, SqsConfig,
    StreamConfig, Table, parse_event,
};

type OnInvocation = Arc<dyn Fn(&InvocationReport) + Send + Sync>;

/// A function, a database and the sources, on this machine. Dropping it kills the function's processes.
pub struct Local {
    pool: Pool,
    dynamodb: DynamoDb,
    sqs: SqsConfig,
    streams: StreamConfig,
    asynchronous: AsyncConfig,
    http: HttpConfig,
    on_invocation: OnInvocation,
}

/// Prepares a [`Local`].
pub struct LocalBuilder {
    function: FunctionConfig,
    dynamodb: Option<DynamoDb>,
    tables: Vec<Table>,
    sandboxes: usize,
    sqs: SqsConfig,
    streams: StreamConfig,
    asynchronous: AsyncConfig,
    http: HttpConfig,
    on_output: OnOutput,
    on_invocation: OnInvocation,
}

impl LocalBuilder {
    /// Creates a table at the start.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }

    /// Uses a database that is there already: for two functions on the same tables.
    #[must_use]
    pub fn dynamodb(mut self, dynamodb: DynamoDb) -> Self {
        self.dynamodb = Some(dynamodb);
        self
    }

    /// How many processes may run at a time; one unless told. They are started when they are needed.
    #[must_use]
    pub fn sandboxes(mut self, sandboxes: usize) -> Self {
        self.sandboxes = sandboxes.max(1);
        self
    }

    /// Settings of the queue.
    #[must_use]
    pub fn sqs(mut self, config: SqsConfig) -> Self {
        self.sqs = config;
        self
    }

    /// Settings of the event source mapping of a stream or a topic.
    #[must_use]
    pub fn streams(mut self, config: StreamConfig) -> Self {
        self.streams = config;
        self
    }

    /// Settings of the client that sends HTTP requests.
    #[must_use]
    pub fn http(mut self, config: HttpConfig) -> Self {
        self.http = config;
        self
    }

    /// Settings of asynchronous invocation.
    #[must_use]
    pub fn asynchronous(mut self, config: AsyncConfig) -> Self {
        self.asynchronous = config;
        self
    }

    /// Gets the lines that the function writes, but for those that tell of a record.
    #[must_use]
    pub fn on_output(mut self, callback: impl Fn(OutputLine) + Send + Sync + 'static) -> Self {
        self.on_output = Arc::new(callback);
        self
    }

    /// Gets each invocation of a delivery as soon as it is over.
    #[must_use]
    pub fn on_invocation(
        mut self,
        callback: impl Fn(&InvocationReport) + Send + Sync + 'static,
    ) -> Self {
        self.on_invocation = Arc::new(callback);
        self
    }

    /// Starts the database and creates the tables. The function's processes start with the first invocation.
    pub async fn start(self) -> Result<Local, Error> {
        let dynamodb = match self.dynamodb {
            Some(dynamodb) => dynamodb,
            None => DynamoDb::start().await?,
        };
        for table in &self.tables {
            dynamodb.create_table(table)?;
        }
        Ok(Local {
            pool: Pool::new(self.function, dynamodb.clone(), self.on_output, self.sandboxes),
            dynamodb,
            sqs: self.sqs,
            streams: self.streams,
            asynchronous: self.asynchronous,
            http: self.http,
            on_invocation: self.on_invocation,
        })
    }
}

impl Local {
    /// Prepares to run this function.
    pub fn builder(function: FunctionConfig) -> LocalBuilder {
        LocalBuilder {
            function,
            dynamodb: None,
            tables: Vec::new(),
            sandboxes: 1,
            sqs: SqsConfig::default(),
            streams: StreamConfig::default(),
            asynchronous: AsyncConfig::default(),
            http: HttpConfig::default(),
            on_output: Arc::new(|_| {}),
            on_invocation: Arc::new(|_| {}),
        }
    }

    /// Invokes the function once, as `aws lambda invoke` does, and waits for the end.
    ///
    /// Waits for a free sandbox first. If the future is dropped, the process is killed.
    pub async fn invoke(&self, event: &Value) -> Result<Invocation, Error> {
        self.invoke_bytes(new_id(), event.to_string()).await
    }

    /// Invokes the function with these very bytes, JSON or not, and with a request id of the caller's choosing.
    pub async fn invoke_bytes(
        &self,
        request_id: impl Into<String>,
        event: impl Into<Bytes>,
    ) -> Result<Invocation, Error> {
        self.pool.invoke(request_id.into(), event.into()).await
    }

    /// Invokes the function with all of these events at the same time, in one process, as Lambda Managed Instances do; see
    /// [`FunctionConfig::concurrency`]. Events beyond the process's concurrency wait until it asks for more.
    ///
    /// If the future is dropped, the process is killed.
    pub async fn invoke_at_once(&self, events: &[Value]) -> Result<AtOnce, Error> {
        let events = events.iter().map(|event| (new_id(), event.to_string().into()));
        self.pool.invoke_at_once(events.collect()).await
    }

    /// Delivers an event as its source would, until each of its records is done, dead-lettered or lost.
    ///
    /// The records of an SQS event are sent to a queue and polled from there, by as many pollers as there are sandboxes;
    /// those of a stream or of Kafka are read shard by shard, partition by partition; an HTTP request has a client that
    /// sends it again; SNS, EventBridge and S3 invoke asynchronously, and a broker's batch comes again as a whole; anything
    /// else is invoked once.
    pub async fn deliver(&self, event: &str) -> Result<DeliveryReport, Error> {
        self.deliver_event(parse_event("event", event)?).await
    }

    /// Delivers the event in a file.
    pub async fn deliver_file(&self, path: impl AsRef<Path>) -> Result<DeliveryReport, Error> {
        let path = path.as_ref();
        let text = tokio::fs::read_to_string(path)
            .await
            .map_err(|source| Error::Read { path: path.to_path_buf(), source })?;
        self.deliver_event(parse_event(&path.display().to_string(), &text)?).await
    }

    /// Delivers an event that has been recognised.
    pub async fn deliver_event(&self, event: Event) -> Result<DeliveryReport, Error> {
        let now = Instant::now();
        match event {
            Event::Sqs(records) => {
                let mut queue = Queue::new(self.sqs.clone(), self.pool.config().timeout);
                for record in records {
                    queue.send(record, now, epoch_ms());
                }
                self.poll(Box::new(queue)).await
            }
            Event::Stream(source, records) => {
                self.poll(Box::new(Shards::new(source, self.streams.clone(), records, now))).await
            }
            Event::Kafka(event) => {
                self.poll(Box::new(Kafka::new(self.streams.clone(), event, now))).await
            }
            Event::Http(event) => self.attempt(Source::Http, &event, &self.http.retry_delays).await,
            Event::Whole(Source::Direct, event) => self.attempt(Source::Direct, &event, &[]).await,
            Event::Whole(source, event) => {
                self.attempt(source, &event, &self.asynchronous.retry_delays).await
            }
        }
    }

    /// Polls a source until nothing is left of it.
    async fn poll(&self, mut poller: Box<dyn Poller>) -> Result<DeliveryReport, Error> {
        let source = poller.source();
        let mut done = DeliveryReport::default();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.pool.concurrency()
                && let Some(batch) = poller.receive(Instant::now(), epoch_ms())
            {
                running.push(async move {
                    let result = self.invoke(batch.event()).await;
                    (batch, result)
                });
            }
            let full = running.len() >= self.pool.concurrency();
            let next = poller.next();
            if running.is_empty() && next.is_none() {
                break;
            }
            tokio::select! {
                Some((batch, invocation)) = running.next() => {
                    let invocation = invocation?;
                    let fates = poller.settle(&batch, &invocation.result, Instant::now());
                    let delivered = batch.records().zip(fates);
                    let delivered = delivered.map(|((id, count), fate)| (id.map(str::to_owned), count, fate)).collect();
                    self.conclude(&mut done, report(source, delivered, invocation));
                }
                () = until(next), if !full => {}
            }
        }
        done.dead_letters = poller.into_dead_letters();
        Ok(done)
    }

    /// Invokes with a whole event, and again after each delay for as long as it fails.
    async fn attempt(
        &self,
        source: Source,
        event: &Value,
        retry_delays: &[std::time::Duration],
    ) -> Result<DeliveryReport, Error> {
        let request_id = new_id();
        let ids = record_ids(source, event);
        let mut done = DeliveryReport::default();
        let mut delays = retry_delays.iter();
        for receive_count in 1.. {
            let invocation = self.invoke_bytes(request_id.clone(), event.to_string()).await?;
            let ends = match source {
                Source::Http => is_final(&invocation.result),
                _ => invocation.result.is_response(),
            };
            let delay = if ends { None } else { delays.next() };
            let fate = match (ends, delay, source) {
                (true, ..) => Fate::Done,
                (false, Some(_), _) => Fate::Returned,
                (false, None, Source::Direct | Source::Http) => Fate::Lost,
                (false, None, _) => Fate::DeadLettered,
            };
            let delivered = ids.iter().map(|id| (id.clone(), receive_count, fate)).collect();
            self.conclude(&mut done, report(source, delivered, invocation));
            if fate == Fate::DeadLettered {
                let record = ids.first().cloned().flatten();
                done.dead_letters.push(DeadLetter {
                    source,
                    record,
                    receive_count,
                    event: event.clone(),
                });
            }
            match delay {
                Some(delay) => tokio::time::sleep(*delay).await,
                None => break,
            }
        }
        Ok(done)
    }

    fn conclude(&self, done: &mut DeliveryReport, invocation: InvocationReport) {
        (self.on_invocation)(&invocation);
        done.invocations.push(invocation);
    }

    /// The invocations that are running now.
    pub fn in_flight(&self) -> Vec<InFlight> {
        self.pool.in_flight()
    }

    /// Kills the process of a running invocation with `SIGKILL`. Its result will say so.
    ///
    /// With a [`Gate`](crate::Gate) the moment can be chosen exactly:
    ///
    /// ```no_run
    /// # use lambda_idempotency_local::{Apply, Fault, Gate, Local};
    /// # async fn example(local: Local, event: &str) -> Result<(), lambda_idempotency_local::Error> {
    /// // The order is placed, and the process dies before it hears of that.
    /// let gate = Gate::new();
    /// local.dynamodb().faults().add(Fault::hold(Apply::After, &gate).table("orders").times(1));
    /// let kill = async {
    ///     gate.reached().await;
    ///     local.kill_in_flight();
    /// };
    /// let (report, ()) = tokio::join!(local.deliver(event), kill);
    /// assert!(report?.is_complete(), "the queue delivered it again");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// False if there is no such invocation (any more).
    pub fn kill(&self, request_id: &str) -> bool {
        self.pool.kill(request_id)
    }

    /// Kills the processes of all running invocations, and says how many.
    pub fn kill_in_flight(&self) -> usize {
        self.in_flight().iter().filter(|running| self.kill(&running.request_id)).count()
    }

    /// Sends a signal to a process, by its id ([`InFlight::pid`]): one that has an invocation, or one that missed its
    /// deadline and was left running ([`FunctionConfig::outlives_timeout`]).
    ///
    /// A process that is stopped misses its deadline. To let it go on afterwards, past its lease, it has to be left
    /// running. False if there is no such process (any more), and on systems that are not Unix.
    pub fn signal(&self, pid: u32, signal: Signal) -> bool {
        self.pool.signal(pid, signal)
    }

    /// Whether a process missed its deadline and was left running ([`FunctionConfig::outlives_timeout`]). It gets no
    /// more work.
    pub fn is_left_running(&self, pid: u32) -> bool {
        self.pool.is_stray(pid)
    }

    /// The embedded database.
    pub fn dynamodb(&self) -> &DynamoDb {
        &self.dynamodb
    }

    /// Kills all processes, waits until they are gone, and closes.
    pub async fn shutdown(self) {
        self.pool.close().await;
    }
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("function", self.pool.config()).finish_non_exhaustive()
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}

fn epoch_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
