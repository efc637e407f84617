//! [`Local`]: the function, its database and its sources, together.

mod deliver;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use crate::dynamodb::{DynamoDb, Table};
use crate::error::Error;
use crate::function::{
    AtOnce, FunctionConfig, InFlight, Invocation, OnOutput, OutputLine, Pool, Signal,
};
use crate::source::{InvocationReport, SqsConfig, StreamConfig};

type OnInvocation = Arc<dyn Fn(&InvocationReport) + Send + Sync>;

/// A function, a database and the sources, on this machine. Dropping it kills the function's processes.
pub struct Local {
    pool: Pool,
    dynamodb: DynamoDb,
    sqs: SqsConfig,
    streams: StreamConfig,
    retry_delays: Vec<Duration>,
    on_invocation: OnInvocation,
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
            retry_delays: [1, 2].map(Duration::from_secs).into(),
            on_output: Arc::new(|_| {}),
            on_invocation: Arc::new(|_| {}),
        }
    }

    /// Starts a process of the function and waits until it asks for its first event; the next invocation uses it.
    /// A mistake that keeps the function from starting is then reported once, and not for every delivery.
    ///
    /// # Errors
    /// [`Error::NotReady`] if the process ended or took too long; [`Error::Start`] if it could not be started.
    pub async fn warm(&self) -> Result<(), Error> {
        self.pool.warm().await
    }

    /// Invokes the function once, as `aws lambda invoke` does, and waits for the end.
    ///
    /// Waits for a free sandbox first. If the future is dropped, the process is killed.
    ///
    /// # Errors
    /// The function could not be invoked: [`Error::Start`], [`Error::Listen`], [`Error::Process`]. A function that fails
    /// is not an error but a result.
    pub async fn invoke(&self, event: &Value) -> Result<Invocation, Error> {
        self.invoke_bytes(Uuid::new_v4().to_string(), event.to_string()).await
    }

    /// Invokes the function with exactly these bytes, JSON or not, and with a request id that the caller chooses.
    ///
    /// # Errors
    /// As [`Local::invoke`].
    pub async fn invoke_bytes(
        &self,
        request_id: impl Into<String>,
        event: impl Into<Bytes>,
    ) -> Result<Invocation, Error> {
        let mut all = self.pool.invoke(vec![(request_id.into(), event.into())]).await?;
        // One event has one result.
        all.invocations.pop().ok_or(Error::ShutDown)
    }

    /// Invokes the function with all of these events at the same time, in one process, as Lambda Managed Instances
    /// do; see [`FunctionConfig::concurrency`](crate::FunctionConfig::concurrency). Events beyond the process's
    /// concurrency wait until it asks for more.
    ///
    /// If the future is dropped, the process is killed.
    ///
    /// # Errors
    /// As [`Local::invoke`].
    pub async fn invoke_at_once(&self, events: &[Value]) -> Result<AtOnce, Error> {
        let events =
            events.iter().map(|event| (Uuid::new_v4().to_string(), event.to_string().into()));
        self.pool.invoke(events.collect()).await
    }

    /// The invocations that are running now.
    pub fn in_flight(&self) -> Vec<InFlight> {
        self.pool.in_flight()
    }

    /// Kills the processes of all running invocations with `SIGKILL`, and says of how many. Their results will say so.
    ///
    /// With a [`Gate`](crate::Gate) the moment can be chosen exactly:
    ///
    /// ```no_run
    /// # use lambda_idempotency_local::{Apply, Fault, Gate, Local};
    /// # async fn example(local: Local, event: &str) -> Result<(), lambda_idempotency_local::Error> {
    /// // The order is placed, and the process dies before it gets the answer.
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
    pub fn kill_in_flight(&self) -> usize {
        let running = self.in_flight();
        running.iter().filter(|running| self.signal(running.pid, Signal::Kill)).count()
    }

    /// Sends a signal to a process, by its id ([`InFlight::pid`]): one that has an invocation, or one that missed its
    /// deadline and was left running ([`FunctionConfig::outlives_timeout`](crate::FunctionConfig::outlives_timeout)).
    ///
    /// A stopped process misses its deadline. To let it continue afterwards, past its lease, it has to be left
    /// running. False if there is no such process (any more), and on systems that are not Unix.
    pub fn signal(&self, pid: u32, signal: Signal) -> bool {
        self.pool.signal(pid, signal)
    }

    /// Whether a process missed its deadline, was left running
    /// ([`FunctionConfig::outlives_timeout`](crate::FunctionConfig::outlives_timeout)), and has not ended since. It gets
    /// no more work.
    pub fn is_left_running(&self, pid: u32) -> bool {
        self.pool.is_stray(pid)
    }

    /// Waits until [`LocalBuilder::on_output`] has returned for every line that the processes have written so far.
    ///
    /// When an invocation ends, that is so for its own process. Another process may have done what this one answered
    /// from, such as the effect of a record that was replayed here; its lines can still be on their way.
    pub async fn read_output(&self) {
        self.pool.read_output().await;
    }

    /// The embedded database.
    pub fn dynamodb(&self) -> &DynamoDb {
        &self.dynamodb
    }

    /// Kills all processes, waits until they have ended, and closes.
    pub async fn shutdown(self) {
        self.pool.close().await;
    }
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("function", self.pool.config()).finish_non_exhaustive()
    }
}

/// Prepares a [`Local`].
pub struct LocalBuilder {
    function: FunctionConfig,
    dynamodb: Option<DynamoDb>,
    tables: Vec<Table>,
    sandboxes: usize,
    sqs: SqsConfig,
    streams: StreamConfig,
    retry_delays: Vec<Duration>,
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

    /// Uses an existing database, for example for two functions on the same tables.
    #[must_use]
    pub fn dynamodb(mut self, dynamodb: DynamoDb) -> Self {
        self.dynamodb = Some(dynamodb);
        self
    }

    /// How many processes may run at a time. Default: one. They are started when they are needed.
    #[must_use]
    pub fn sandboxes(mut self, sandboxes: usize) -> Self {
        self.sandboxes = sandboxes.max(1);
        self
    }

    /// Settings of the queue, and of a pipe from one.
    #[must_use]
    pub fn sqs(mut self, config: SqsConfig) -> Self {
        self.sqs = config;
        self
    }

    /// Settings of the event source mapping of a stream or a topic, and of a pipe from a stream.
    #[must_use]
    pub fn streams(mut self, config: StreamConfig) -> Self {
        self.streams = config;
        self
    }

    /// How long to wait before each retry of an asynchronous invocation, and of other events that are retried as a whole.
    /// Default: one second and two more, as in AWS, but with seconds for minutes.
    #[must_use]
    pub fn retry_delays(mut self, delays: Vec<Duration>) -> Self {
        self.retry_delays = delays;
        self
    }

    /// Calls this with each line that the function writes, lines about records included ([`OutputLine::is_record`]).
    /// When an invocation ends, this has been called with all lines of its process; for those of the others, see
    /// [`Local::read_output`].
    #[must_use]
    pub fn on_output(mut self, callback: impl Fn(OutputLine) + Send + Sync + 'static) -> Self {
        self.on_output = Arc::new(callback);
        self
    }

    /// Calls this with each invocation of a delivery as soon as it has ended.
    #[must_use]
    pub fn on_invocation(
        mut self,
        callback: impl Fn(&InvocationReport) + Send + Sync + 'static,
    ) -> Self {
        self.on_invocation = Arc::new(callback);
        self
    }

    /// Starts the database and creates the tables. The function's processes start with the first invocation.
    ///
    /// # Errors
    /// [`Error::Listen`], [`Error::Failed`]: the database does not start, or refuses a table.
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
            retry_delays: self.retry_delays,
            on_invocation: self.on_invocation,
        })
    }
}
